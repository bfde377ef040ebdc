"""Builds images whose content has changed, and remembers what each is called."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from builder.archives import read_digest
from builder.catalogue import IMAGES, Entry
from builder.chart_values import chart_values
from builder.digesting import digest_files, digest_texts
from builder.engines import Engine, Recipe
from builder.faults import ImageError

PREFIX = "localhost/proctor"
TAG = "dev"
VALUES = "values.yaml"
"""JSON, which is YAML too."""
# The modules here on which the content of an image depends.
MAKERS = tuple(Path(__file__).with_name(f"{name}.py") for name in ("catalogue", "python_tree"))


@dataclass(frozen=True)
class Built:
    """An image that is there.

    Args:
        name: its folder in `images/`.
        archive: the file that holds it.
        digest: of its manifest, `sha256:…`.
        fresh: whether it was built just now.
    """

    name: str
    archive: Path
    digest: str
    fresh: bool

    @property
    def tag(self) -> str:
        """Its name for people."""
        return full_name(self.name)

    @property
    def pinned(self) -> str:
        """Its name for manifests."""
        return f"{PREFIX}/{self.name}@{self.digest}"


def full_name(name: str) -> str:
    """Return the name with the tag."""
    return f"{PREFIX}/{name}:{TAG}"


@dataclass(frozen=True)
class Workshop:
    """Where images are built and kept.

    Args:
        entries: the images that there are, each after its base.
        folder: archives, and what is known of them.
        engine: builds them.
        base: an image to start from in place of the one made of packages, or of the Containerfiles' own.
        say: is told what is done.
    """

    entries: Mapping[str, Entry]
    folder: Path
    engine: Engine
    base: str | None
    say: Callable[[str], None]

    def build(self, names: Iterable[str]) -> list[Built]:
        """Build these and what they start from, each if its content has changed."""
        keys: dict[str, str] = {}
        built = []
        for name in self._needed(names):
            keys[name] = self._key(self.entries[name], keys)
            built.append(self._build_one(self.entries[name], keys[name]))
        with self._alone("images"):
            known = {**self.known(), **{image.name: image.pinned for image in built}}
            self._write("images.json", known)
            self._write(VALUES, chart_values(known))
        return built

    def known(self) -> dict[str, str]:
        """Return the name by digest of every image that was built last."""
        file = self.folder / "images.json"
        return dict(json.loads(file.read_text())) if file.exists() else {}

    def _write(self, name: str, value: object) -> None:
        partial = self.folder / f"{name}.partial"
        partial.write_text(json.dumps(value, indent=1, sort_keys=True))
        partial.rename(self.folder / name)

    def _needed(self, names: Iterable[str]) -> list[str]:
        wanted = set(names)
        if unknown := wanted - self.entries.keys():
            raise ImageError(f"no such images: {', '.join(sorted(unknown))}; there are {', '.join(self.entries)}")
        for name in reversed(self.entries):
            if name in wanted and (base := self._base(self.entries[name])) in self.entries:
                wanted.add(str(base))
        return [name for name in self.entries if name in wanted]

    def _base(self, entry: Entry) -> str | None:
        """Return the entry that an image starts from, or the name of a foreign image, or nothing."""
        if entry.base == "base" and (self.base is not None or self.engine.has_registry):
            return self.base
        return entry.base

    def _key(self, entry: Entry, keys: dict[str, str]) -> str:
        base = self._base(entry) or ""
        return digest_texts(
            [
                entry.inputs(),
                digest_files(IMAGES / entry.name / "Containerfile", *MAKERS),
                keys.get(base, base),
                type(self.engine).__name__,
            ]
        )

    def _build_one(self, entry: Entry, key: str) -> Built:
        archive = self.folder / f"{entry.name}-{key}.tar"
        with self._alone(entry.name):
            if fresh := not archive.exists():
                self.say(f"build {entry.name}")
                self._make(entry, archive)
                self._forget_older(archive)
        return Built(entry.name, archive, read_digest(archive), fresh)

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """Let one process at a time make an image."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _forget_older(self, archive: Path) -> None:
        name, key = archive.stem.rsplit("-", 1)
        for old in self.folder.glob(f"{name}-{'?' * len(key)}.tar"):
            if old != archive:
                old.unlink()

    def _make(self, entry: Entry, archive: Path) -> None:
        base = self._base(entry)
        partial = archive.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        with TemporaryDirectory(dir=self.folder, prefix="context-") as folder:
            context = Path(folder)
            entry.fill(context, self.folder / "trees")
            recipe = Recipe(
                name=full_name(entry.name),
                containerfile=IMAGES / entry.name / "Containerfile",
                context=context,
                base=full_name(base) if base in self.entries else base,
            )
            self.engine.build(recipe, partial)
        shutil.move(partial, archive)
