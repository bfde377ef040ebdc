"""Files that are either wholly there or not at all, whatever is killed."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from proctor.errors import Terminal


def write_atomic(path: Path, body: bytes) -> None:
    """Replace a file in one step; after a return it survives a power cut.

    Raises:
        Terminal: it could not be written, with what to do about it.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as stream:
            stream.write(body)
            stream.flush()
            os.fsync(stream.fileno())
        partial.rename(path)
        _sync_folder(path.parent)
    except OSError as e:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise translate_os_error(e, f"writing {path}") from e


def append_line(descriptor: int, line: bytes, path: Path) -> None:
    """Append one line and wait until it is on the disk.

    Raises:
        Terminal: it could not be written, with what to do about it.
    """
    try:
        os.write(descriptor, line + b"\n")
        os.fdatasync(descriptor)
    except OSError as e:
        raise translate_os_error(e, f"appending to {path}") from e


def translate_os_error(error: OSError, attempted: str) -> Terminal:
    """Say what an operating system's error means for a person."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return Terminal(f"{attempted}: the disk is full; free some space, or choose another --data-dir")
    if error.errno in {errno.EACCES, errno.EROFS, errno.EPERM}:
        return Terminal(f"{attempted}: not allowed ({error.strerror}); choose another --data-dir")
    return Terminal(f"{attempted}: {error.strerror}")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
