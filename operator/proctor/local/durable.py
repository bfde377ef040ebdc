"""Files that are either wholly there or not at all, whatever is killed."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from proctor.errors import DiskFull, InvalidInput, Terminal

LEAST_FREE_BYTES = 32 << 20
"""With less, a run stops: an engine that meets a full disk in the middle of a merge says so in many ways, or dies."""

_MEBIBYTE = 1 << 20

_WRONG_FOLDER = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS}
)
"""What says that the wrong folder was named, before anything was started."""


def write_atomic(path: Path, body: bytes) -> None:
    """Replace a file in one step; after a return it survives a power cut.

    Raises:
        Terminal: it could not be written, with what to do about it.
    """
    with open_atomic(path) as stream:
        stream.write(body)


@contextlib.contextmanager
def open_atomic(path: Path) -> Iterator[BinaryIO]:
    """Write a file that takes its place in one step when the block ends, and never if the block fails.

    Raises:
        Terminal: it could not be written, with what to do about it.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        partial.rename(path)
        _sync_folder(path.parent)
    except BaseException as e:
        with contextlib.suppress(OSError):
            partial.unlink()
        if isinstance(e, OSError):
            raise translate_os_error(e, f"writing {path}") from e
        raise


def append_line(descriptor: int, line: bytes, path: Path) -> None:
    """Append one line, whole or not at all, and wait until it is on the disk.

    Raises:
        Terminal: it could not be written, with what to do about it.
    """
    size = os.fstat(descriptor).st_size
    rest = memoryview(line + b"\n")
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fdatasync(descriptor)
    except OSError as e:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, size)
        raise translate_os_error(e, f"appending to {path}") from e


def drop_torn_line(descriptor: int) -> None:
    """Cut what follows the last line's end: its writer was killed, and the next line must not follow half of one."""
    size = os.fstat(descriptor).st_size
    body = os.pread(descriptor, size, 0)
    whole = body.rfind(b"\n") + 1
    if whole < size:
        os.ftruncate(descriptor, whole)


def check_room(folder: Path) -> None:
    """Look how much room the disk of a folder has left.

    Args:
        folder: need not be there yet.

    Raises:
        DiskFull: less than a run needs to end in order.
    """
    there = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        found = os.statvfs(there)
    except OSError:
        return  # whoever writes there will say what is wrong
    free = found.f_bavail * found.f_frsize
    if free < LEAST_FREE_BYTES:
        raise DiskFull(
            f"data dir {folder}: {free // _MEBIBYTE} MiB are free, and {LEAST_FREE_BYTES // _MEBIBYTE} MiB is the least"
        )


def translate_os_error(error: OSError, attempted: str) -> Terminal:
    """Say what an operating system's error means for a person."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return DiskFull(attempted)
    if error.errno in {errno.EACCES, errno.EROFS, errno.EPERM}:
        return Terminal(f"{attempted}: not allowed ({error.strerror}); choose another folder")
    return Terminal(f"{attempted}: {error.strerror}")


def translate_data_dir_error(error: OSError, data_dir: Path, attempted: str) -> InvalidInput | Terminal:
    """Say the same of an error in making or opening a data dir: most say that the wrong folder was named."""
    if error.errno in _WRONG_FOLDER:
        return InvalidInput(
            f"data dir {data_dir}: {error.strerror}; choose another with --data-dir or PROCTOR_DATA_DIR"
        )
    return translate_os_error(error, attempted)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
