"""A copy of a data folder in milliseconds: the engine never changes a file of a finished part, so links suffice."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from pathlib import Path

from proctor.errors import Terminal

_LEFT_OUT = frozenset({"status", "tmp"})
"""At the top of a data folder: the lock of the engine that served it, and its scratch."""

_NO_LINK = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP})
"""What ``link`` answers where a copy is the way: another device, a file system without links, too many of them."""


def clone_dataset(source: Path, target: Path) -> None:
    """Make `target` an independent data folder with the rows of `source`, which no engine may be writing to.

    It appears whole or not at all. Files of parts are hard links where the file system allows it, else copies.

    Raises:
        Terminal: the source is missing, the target exists, or the file system refuses.
    """
    if not source.is_dir():
        raise Terminal(f"data folder {source}: not there, so it can't be cloned")
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
    try:
        _copy_folder(source, staging, left_out=_LEFT_OUT, roots=(source.resolve(), target.absolute()))
        staging.rename(target)
    except OSError as error:
        shutil.rmtree(staging, ignore_errors=True)
        raise Terminal(f"data folder {source}: cloning to {target} failed: {error.strerror or error}") from error


def _copy_folder(source: Path, target: Path, *, left_out: frozenset[str], roots: tuple[Path, Path]) -> None:
    target.mkdir(mode=0o700)
    with os.scandir(source) as entries:
        for entry in entries:
            if entry.name in left_out:
                continue
            copy = target / entry.name
            if entry.is_symlink():
                copy.symlink_to(_moved(Path(entry.path).readlink(), *roots))
            elif entry.is_dir():
                _copy_folder(Path(entry.path), copy, left_out=frozenset(), roots=roots)
            else:
                _link_or_copy(Path(entry.path), copy)


def _moved(link: Path, source: Path, target: Path) -> Path:
    """Return where a link of the source points in the target; the engine writes some of them absolute."""
    return target / link.relative_to(source) if link.is_relative_to(source) else link


def _link_or_copy(source: Path, target: Path) -> None:
    if source.suffix == ".sql":  # definitions of tables, the one kind of file that an ALTER rewrites
        shutil.copy2(source, target)
        return
    try:
        target.hardlink_to(source)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        shutil.copy2(source, target)
