"""Copies of data folders."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from proctor.errors import Terminal
from proctor.local.engine import clone_dataset


def make_folder(root: Path) -> Path:
    source = root / "source"
    part = source / "store" / "abc" / "all_1_1_0"
    part.mkdir(parents=True)
    (part / "data.bin").write_bytes(b"rows")
    (source / "metadata").mkdir()
    (source / "metadata" / "ds.sql").write_text("ATTACH DATABASE")
    (source / "data").mkdir()
    (source / "data" / "absolute").symlink_to(source / "store" / "abc")
    (source / "data" / "relative").symlink_to(Path("../store/abc"))
    (source / "status").write_text("PID: 1")
    (source / "tmp").mkdir()
    return source


def test_parts_are_linked_and_definitions_copied(tmp_path: Path) -> None:
    """M-A11: a clone costs no rows; what an ALTER rewrites is its own."""
    source, target = make_folder(tmp_path), tmp_path / "clones" / "target"
    clone_dataset(source, target)
    assert (target / "store/abc/all_1_1_0/data.bin").samefile(source / "store/abc/all_1_1_0/data.bin")
    assert not (target / "metadata/ds.sql").samefile(source / "metadata/ds.sql")
    assert not (target / "status").exists()
    assert not (target / "tmp").exists()


def test_links_inside_stay_inside(tmp_path: Path) -> None:
    """M-A11: a clone never leads back into its source."""
    source, target = make_folder(tmp_path), tmp_path / "target"
    clone_dataset(source, target)
    assert (target / "data/absolute").resolve() == target / "store/abc"
    assert (target / "data/relative").resolve() == target / "store/abc"


def test_another_device_gets_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """M-A11: a data folder may be spread over file systems."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    source, target = make_folder(tmp_path), tmp_path / "target"
    clone_dataset(source, target)
    copy = target / "store/abc/all_1_1_0/data.bin"
    assert copy.read_bytes() == b"rows"
    assert not copy.samefile(source / "store/abc/all_1_1_0/data.bin")


def test_a_clone_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults, full disk: a clone that failed leaves nothing."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    source = make_folder(tmp_path)
    with pytest.raises(Terminal, match="No space left"):
        clone_dataset(source, tmp_path / "target")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_a_missing_source_or_a_taken_target_is_refused(tmp_path: Path) -> None:
    """M-A11: nothing is overwritten."""
    source = make_folder(tmp_path)
    with pytest.raises(Terminal, match="not there"):
        clone_dataset(tmp_path / "nothing", tmp_path / "target")
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "kept").touch()
    with pytest.raises(Terminal, match="cloning to"):
        clone_dataset(source, tmp_path / "target")
    assert (tmp_path / "target" / "kept").exists()
