"""The processes of a sandbox as this machine's /proc shows them."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

from proctor.adapters.sandbox.spec import Limits

_KIB = 1024
_RESIDENT, _PROPORTIONAL = ("RssAnon:", "RssShmem:"), ("Pss_Anon:", "Pss_Shmem:")
"""Memory that is the processes' own; pages of files belong to the page cache, and can be dropped."""


_HEADROOM = 256 * 1024 * _KIB
"""What a process can take between two looks."""


def apply_limits(pid: int, limits: Limits) -> None:
    """Limit a process that has started nothing yet, and so everything that it starts.

    The limit of one process's own memory is well above the sandbox's: a single great request fails at once, while
    what grows is found, and told apart from other failures, by whoever watches the sum.
    """
    for kind, value in (
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_DATA, 2 * limits.memory_bytes + _HEADROOM),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_RTPRIO, 0),
    ):
        resource.prlimit(pid, kind, (value, value))


def list_descendants(pid: int) -> list[int]:
    """Return all living descendants, parents first."""
    found: list[int] = []
    rest = [pid]
    while rest:
        parent = rest.pop()
        for child in list_children(parent):
            found.append(child)
            rest.append(child)
    return found


def is_over(pids: list[int], memory_bytes: int) -> tuple[bool, int]:
    """Tell whether processes hold more memory of their own than that, and about how much they hold.

    What forked processes share is counted once for each of them at first, since that is cheap to read; only when that
    is too much, it is counted exactly.
    """
    used = sum(_sum_fields(Path(f"/proc/{pid}/status"), _RESIDENT) for pid in pids)
    if used <= memory_bytes:
        return False, used
    exactly = sum(_sum_fields(Path(f"/proc/{pid}/smaps_rollup"), _PROPORTIONAL) for pid in pids)
    return exactly > memory_bytes, exactly


def signal_all(pids: list[int], number: signal.Signals) -> None:
    """Signal processes; those that are gone already are passed over."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def list_children(pid: int) -> list[int]:
    """Return the living children of all threads of a process."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(word) for thread in threads for word in (thread / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _sum_fields(path: Path, fields: tuple[str, ...]) -> int:
    try:
        text = path.read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0  # it has ended, or is about to
    return sum(int(line.split()[1]) * _KIB for line in text.splitlines() if line.startswith(fields))
