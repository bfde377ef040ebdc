"""Images are built for what is in them, and known by the digest that a cluster will know them by."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from builder.archives import read_digest
from builder.building import Workshop
from builder.catalogue import Entry, catalogue
from builder.engines import Recipe
from builder.faults import ImageError
from builder.python_tree import _move_scripts


def write_archive(archive: Path, *digests: str) -> None:
    content = json.dumps({"manifests": [{"digest": digest} for digest in digests]}).encode()
    member = tarfile.TarInfo("index.json")
    member.size = len(content)
    with tarfile.open(archive, "w") as tar:
        tar.addfile(member, io.BytesIO(content))


@dataclass
class PaperEngine:
    """Writes down what it is asked to build."""

    has_registry: bool = False
    built: list[str] = field(default_factory=list)
    bases: list[str | None] = field(default_factory=list)

    def build(self, recipe: Recipe, archive: Path) -> None:
        self.built.append(recipe.name)
        self.bases.append(recipe.base)
        write_archive(archive, f"sha256:{len(self.built):064x}")


def workshop(folder: Path, engine: PaperEngine, contents: dict[str, str], base: str | None = None) -> Workshop:
    """`operator` on `base`, with these contents."""
    entries = {
        name: Entry(name, start, lambda name=name: contents[name], lambda _context, _kept: None)
        for name, start in (("base", None), ("operator", "base"))
    }
    return Workshop(entries, folder, engine, base, lambda _what: None)


def test_what_has_not_changed_is_not_built_again(tmp_path: Path) -> None:
    """A warm `make images` builds nothing, and knows the same names."""
    engine, contents = PaperEngine(), {"base": "1", "operator": "1"}
    first = workshop(tmp_path, engine, contents).build(["operator"])
    second = workshop(tmp_path, engine, contents).build(["operator"])
    assert engine.built == ["localhost/proctor/base:dev", "localhost/proctor/operator:dev"]
    assert [image.pinned for image in first] == [image.pinned for image in second]
    assert [image.fresh for image in second] == [False, False]


def test_what_has_changed_is_built_alone(tmp_path: Path) -> None:
    """A change of the source leaves the base as it is, and the older archive goes."""
    engine = PaperEngine()
    workshop(tmp_path, engine, {"base": "1", "operator": "1"}).build(["operator"])
    workshop(tmp_path, engine, {"base": "1", "operator": "2"}).build(["operator"])
    assert engine.built[2:] == ["localhost/proctor/operator:dev"]
    assert len(list(tmp_path.glob("operator-*.tar"))) == 1


def test_a_changed_base_changes_all_above(tmp_path: Path) -> None:
    """An image is what it starts from, too."""
    engine = PaperEngine()
    workshop(tmp_path, engine, {"base": "1", "operator": "1"}).build(["operator"])
    workshop(tmp_path, engine, {"base": "2", "operator": "1"}).build(["operator"])
    assert len(engine.built) == 4


def test_the_base_is_made_only_where_none_is_fetched(tmp_path: Path) -> None:
    """With a registry the Containerfile's own base is taken; a named base goes before both."""
    engine = PaperEngine(has_registry=True)
    workshop(tmp_path, engine, {"base": "1", "operator": "1"}).build(["operator"])
    workshop(tmp_path, engine, {"base": "1", "operator": "1"}, base="mirror/python:3.11").build(["operator"])
    assert engine.bases == [None, "mirror/python:3.11"]


def test_names_by_digest_are_kept_for_the_tests(tmp_path: Path) -> None:
    """Building one image does not forget the others."""
    shop = workshop(tmp_path, PaperEngine(), {"base": "1", "operator": "1"})
    shop.build(["base"])
    shop.build(["operator"])
    assert shop.known() == {
        "base": f"localhost/proctor/base@sha256:{1:064x}",
        "operator": f"localhost/proctor/operator@sha256:{2:064x}",
    }


def test_an_unknown_image_is_named(tmp_path: Path) -> None:
    """The message says what there is."""
    with pytest.raises(ImageError, match=r"no such images: gateway; there are base, operator"):
        workshop(tmp_path, PaperEngine(), {"base": "1", "operator": "1"}).build(["gateway"])


def test_an_archive_holds_one_image(tmp_path: Path) -> None:
    """More than one, or one of an old docker, has no digest to be known by."""
    write_archive(tmp_path / "two.tar", "sha256:1", "sha256:2")
    with pytest.raises(ImageError, match="holds 2 images"):
        read_digest(tmp_path / "two.tar")
    with tarfile.open(tmp_path / "old.tar", "w"):
        pass
    with pytest.raises(ImageError, match="no OCI index"):
        read_digest(tmp_path / "old.tar")


def test_every_folder_with_a_containerfile_is_an_image() -> None:
    """`make images` forgets none."""
    folders = {path.parent.name for path in Path(__file__).parents[3].glob("images/*/Containerfile")}
    assert folders == set(catalogue())


def test_scripts_start_with_the_image_s_python(tmp_path: Path) -> None:
    """A script that names this machine's Python would not start in a pod."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "clickscope").write_text("#!/home/me/.venv/bin/python3\nimport clickscope\n")
    _move_scripts(tmp_path / "bin", tmp_path / "out")
    assert (tmp_path / "out" / "clickscope").read_text() == "#!/opt/proctor/bin/python3\nimport clickscope\n"
