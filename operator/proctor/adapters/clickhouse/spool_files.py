"""The files of a spool: records are appended to the newest, read from the oldest, and a file goes when all is stored.

A record is safe from the death of this process as soon as `append` returns, because the kernel has it. It is safe from
the death of the machine once `sync` returned, which the writer calls when the store does not answer: as long as it
does, rows reach the store's disk sooner than they would reach this one, and an attempt counts only once they did.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
from dataclasses import dataclass
from pathlib import Path

from proctor.adapters.clickhouse.spool_codec import SpoolDamage, SpooledRecord, decode_records
from proctor.errors import Retryable, Terminal

_log = logging.getLogger(__name__)

_SUFFIX = ".spool"
_DAMAGED_SUFFIX = ".damaged"
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class SpoolFull(Retryable):
    """There is no room for another record: the disk is full, or the store has been away for too long."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a spool file that can be read while more is appended behind it."""

    path: Path
    start: int
    end: int


class SpoolFiles:
    """The files in one folder, which one process at a time may use.

    Args:
        directory: the folder; made if missing.
        segment_bytes: a file that has grown beyond it is followed by a new one.
        capacity_bytes: how much may wait altogether.
    """

    def __init__(self, directory: Path, *, segment_bytes: int = 8 << 20, capacity_bytes: int = 2 << 30) -> None:
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._capacity_bytes = capacity_bytes
        self._sizes: dict[Path, int] = {}  # of every file that still holds unstored records, oldest first
        self._live: tuple[Path, int] | None = None  # the file being appended to, and its descriptor
        self._lock = -1
        self._next_number = 1

    def open(self) -> tuple[Stretch, ...]:
        """Take the folder; return what an earlier process left in it.

        Raises:
            Terminal: another process has it, or it can't be used.
        """
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.close()
            raise Terminal(f"spool {self._directory}: another process is writing it") from error
        except OSError as error:
            raise Terminal(f"spool {self._directory}: can't be opened: {error.strerror}") from error
        for path in sorted(self._directory.glob(f"*{_SUFFIX}*")):
            number = path.name.partition(".")[0]
            self._next_number = max(self._next_number, int(number) + 1 if number.isdecimal() else 1)
            size = path.stat().st_size
            if path.suffix == _SUFFIX and size:
                self._sizes[path] = size
            elif path.suffix == _SUFFIX:
                path.unlink()  # its process died between making it and writing to it
        return tuple(Stretch(path, 0, size) for path, size in self._sizes.items())

    @property
    def waiting_bytes(self) -> int:
        """Size of all files that still hold unstored records."""
        return sum(self._sizes.values())

    def append(self, record: bytes) -> None:
        """Write a record behind all others, whole or not at all.

        Raises:
            SpoolFull: no room; what was written before stays.
            Terminal: the disk failed otherwise.
        """
        if self.waiting_bytes + len(record) > self._capacity_bytes:
            raise SpoolFull(
                f"spool {self._directory}: {self.waiting_bytes} bytes wait for the results store, and "
                f"{self._capacity_bytes} is the limit: bring the store back, then try again",
                delay=10.0,
            )
        try:
            path, descriptor = self._live or self._begin_segment()
            self._write(path, descriptor, record)
        except OSError as error:
            if error.errno in _NO_ROOM:
                message = f"spool {self._directory}: no room on the disk for {len(record)} bytes: {error.strerror}"
                raise SpoolFull(message, delay=10.0) from error
            raise Terminal(f"spool {self._directory}: writing failed: {error.strerror}") from error
        if self._sizes[path] >= self._segment_bytes:
            self.seal()

    def _write(self, path: Path, descriptor: int, record: bytes) -> None:
        written = 0
        try:
            while written < len(record):
                written += os.write(descriptor, memoryview(record)[written:])
        except OSError:
            os.ftruncate(descriptor, self._sizes[path])  # or the next record would follow half of this one
            raise
        self._sizes[path] += written

    def _begin_segment(self) -> tuple[Path, int]:
        path = self._directory / f"{self._next_number:012d}{_SUFFIX}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        self._next_number += 1
        self._sizes[path] = 0
        self._live = (path, descriptor)
        return self._live

    def seal(self) -> None:
        """Append no more to the newest file."""
        if self._live:
            os.close(self._live[1])
            self._live = None

    def sync(self) -> None:
        """Return once the disk has everything; may run in a thread while records are appended."""
        for path in list(self._sizes):
            _sync(path)
        _sync(self._directory)

    def oldest(self, start: int) -> Stretch | None:
        """Return what lies behind `start` in the oldest file; None if nothing does."""
        for path, size in self._sizes.items():
            return Stretch(path, start, size) if size > start else None
        return None

    def is_finished(self, stretch: Stretch) -> bool:
        """Whether nothing was appended to its file behind a stretch."""
        return self._sizes[stretch.path] == stretch.end

    def discard(self, path: Path, *, is_damaged: bool) -> None:
        """Remove a file whose records are all stored; keep it under another name if some of it can't be read."""
        del self._sizes[path]
        if self._live and self._live[0] == path:
            self.seal()
        if is_damaged:
            path.rename(path.with_suffix(_SUFFIX + _DAMAGED_SUFFIX))
        else:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the folder; what waits in it stays."""
        self.seal()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


@dataclass(frozen=True, slots=True)
class ReadStretch:
    """The records of a stretch.

    Attributes:
        records: in the order they were appended.
        is_damaged: whether some couldn't be read.
    """

    records: tuple[SpooledRecord, ...]
    is_damaged: bool


def read_stretch(stretch: Stretch) -> ReadStretch:
    """Read and check a part of a spool file."""
    with stretch.path.open("rb") as file:
        file.seek(stretch.start)
        content = file.read(stretch.end - stretch.start)
    records: list[SpooledRecord] = []
    is_damaged = False
    for item in decode_records(content):
        if isinstance(item, SpoolDamage):
            _log.warning("spool file is damaged", extra={"file": str(stretch.path), "offset": item.offset})
            is_damaged = True
        else:
            records.append(item)
    return ReadStretch(tuple(records), is_damaged)


def _sync(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # stored and removed meanwhile
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
