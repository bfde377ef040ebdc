"""A data dir on a small disk of its own, which a test can fill and free; it goes with the test, however that ends."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.local_runs import Machine

_BALLAST = "ballast"
_PAGE = 4096
# In a mount namespace of its own, and for as long as its input is open: nobody else sees the disk, nothing is left.
_MOUNT = 'mount -t tmpfs -o size="$1" tmpfs "$2" && echo mounted && exec cat'


@dataclass
class SmallDisk:
    """A mounted disk.

    Attributes:
        machine: its data dir is on it.
        seen: the disk, as this process sees it.
    """

    machine: Machine
    seen: Path

    @property
    def free(self) -> int:
        found = os.statvfs(self.seen)
        return found.f_bavail * found.f_frsize

    def fill(self, *, leave: int = 0) -> None:
        """Take room until only so many bytes are left."""
        with (self.seen / _BALLAST).open("ab") as stream:
            wanted = self.free - leave
            while wanted >= _PAGE:
                size = os.fstat(stream.fileno()).st_size
                try:
                    os.posix_fallocate(stream.fileno(), size, wanted)
                except OSError:
                    wanted //= 2  # all or nothing; somebody else has just taken some
                else:
                    wanted = self.free - leave

    def make_room(self) -> None:
        (self.seen / _BALLAST).unlink(missing_ok=True)


@contextmanager
def mount_small_disk(place: Path, *, mebibytes: int) -> Iterator[SmallDisk]:
    """Mount a disk on a folder; commands of its machine see it there."""
    place.mkdir()
    holder = subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", _MOUNT, "sh", f"{mebibytes}m", str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"mounted\n"
        seen = Path(f"/proc/{holder.pid}/root{place}")
        inside = ("nsenter", "--mount", "--target", str(holder.pid), "--wd=/")
        yield SmallDisk(Machine(place, prefix=inside, seen=seen), seen)
    finally:
        holder.stdin.close() if holder.stdin else None
        holder.wait(30)
        if holder.stdout:
            holder.stdout.close()
