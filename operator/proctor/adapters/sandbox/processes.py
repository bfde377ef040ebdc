"""The processes of a sandbox as this machine's /proc shows them."""

from __future__ import annotations

import logging
import os
import resource
import signal
from dataclasses import dataclass
from pathlib import Path

from proctor.adapters.sandbox.spec import WRITABLE, Limits
from proctor.core.trajectory.outcome import ExitCause

_logger = logging.getLogger(__name__)

_KIB = 1024
_RESIDENT, _PROPORTIONAL = ("RssAnon:", "RssShmem:"), ("Pss_Anon:", "Pss_Shmem:")
"""Memory that is the processes' own; pages of files belong to the page cache, and can be dropped."""

_TABLES = ("VmPTE:",)
"""What it takes to know where memory is: half as much again as the memory for whoever wants it to be, and more."""

_HEADROOM = 256 * 1024 * _KIB
"""What a process can take between two looks."""

_FIRST_TO_GO = 800
"""Of 1000: where the machine itself runs out of memory, the kernel ends a sandbox before anything of ours."""

_MAX_SIGNALS = 1024
"""That wait to be delivered: counted by user, so that those of a sandbox would be missed elsewhere."""


@dataclass(frozen=True, slots=True)
class Excess:
    """That a sandbox uses more than it may.

    Attributes:
        cause: of its end.
        message: what it used too much of.
    """

    cause: ExitCause
    message: str


@dataclass(frozen=True, slots=True)
class Look:
    """What a sandbox uses.

    Attributes:
        memory_bytes: of its processes, about.
        excess: what it uses more of than it may; None if it keeps to its limits.
    """

    memory_bytes: int
    excess: Excess | None


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
        (resource.RLIMIT_SIGPENDING, _MAX_SIGNALS),
    ):
        resource.prlimit(pid, kind, (value, value))
    try:
        Path(f"/proc/{pid}/oom_score_adj").write_text(str(_FIRST_TO_GO))
    except OSError as e:
        # Only somebody who has made it higher already, or a kernel without it, refuses; neither is a danger to us.
        _logger.debug("the kernel keeps its order of ending processes", extra={"error": str(e)})


def look(pids: list[int], limits: Limits, *, root: Path | None = None) -> Look:
    """Measure what processes use, and compare that with what they may.

    The kernel holds each process to its limits; this is about their sum, and about what no limit of a process counts.

    Args:
        pids: all processes of a sandbox.
        limits: what they may use.
        root: the sandbox's root folder; None if it has none of its own.
    """
    over, used = is_over(pids, limits.memory_bytes)
    if over:
        return Look(used, Excess(ExitCause.MEMORY, f"it used more than {limits.memory_bytes} bytes of memory"))
    for number, limit, what in (
        # The kernel stops it before, except where root lacks the rights to give each sandbox a user.
        (len(pids), limits.processes + 1, "it ran more than {} processes"),
        (sum(_count_open(pid) for pid in pids), limits.open_files_in_all, "it held more than {} files open"),
        (max(_count_files(root), default=0), limits.files, "it made more than {} files"),
    ):
        if number > limit:
            return Look(used, Excess(ExitCause.EXCESS, what.format(limit)))
    return Look(used, None)


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
    used = sum(_sum_fields(f"/proc/{pid}/status", _RESIDENT + _TABLES) for pid in pids)
    if used <= memory_bytes:
        return False, used
    tables = sum(_sum_fields(f"/proc/{pid}/status", _TABLES) for pid in pids)
    if tables > memory_bytes:
        return True, tables
    exactly = tables + sum(_sum_fields(f"/proc/{pid}/smaps_rollup", _PROPORTIONAL) for pid in pids)
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
    # Read many times a second for every sandbox: paths as plain text cost a fifth of objects.
    folder = f"/proc/{pid}/task"
    try:
        threads = os.listdir(folder)  # noqa: PTH208 - as above
        return [int(word) for thread in threads for word in _read(f"{folder}/{thread}/children").split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _count_open(pid: int) -> int:
    """Return how many files a process holds open; sockets and pipes are files, and hold what waits in them."""
    folder = Path(f"/proc/{pid}/fd")
    try:
        return folder.stat().st_size or len(list(folder.iterdir()))  # kernels before 6.2 don't tell by size
    except OSError:
        return 0  # it has ended, or is about to


def _count_files(root: Path | None) -> list[int]:
    """Return how many files there are in each place that can be written; empty ones take no space, but memory."""
    found = []
    for place in WRITABLE if root is not None else ():
        try:
            about = os.statvfs(f"{root}{place}")
        except OSError:
            continue  # it has ended, or is about to
        found.append(about.f_files - about.f_ffree)
    return found


def _sum_fields(path: str, fields: tuple[str, ...]) -> int:
    wanted = tuple(field.encode() for field in fields)
    try:
        text = _read(path)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0  # it has ended, or is about to
    return sum(int(line.split()[1]) * _KIB for line in text.splitlines() if line.startswith(wanted))


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = b""
        while piece := os.read(descriptor, 65536):
            content += piece
        return content
    finally:
        os.close(descriptor)
