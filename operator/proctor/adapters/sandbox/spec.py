"""What is started in a sandbox, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

MIB = 1024 * 1024

SANDBOX_UID = 10001
"""Who everything in a sandbox is; owner of nothing outside it."""

SCRATCH = "/tmp"  # noqa: S108 - a path inside the sandbox, on a tmpfs of its own
"""Where files are for."""

WRITABLE = (SCRATCH, "/dev/shm")  # noqa: S108 - as above
"""What can be written, each in memory and bounded by itself."""


class Isolation(StrEnum):
    """What stands between the machine and what runs on it."""

    BWRAP = "bwrap"
    NONE = "none"  # cells are not isolated, and the report says so


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one sandbox may use.

    Attributes:
        memory_bytes: all its processes together; above it they are killed.
        processes: processes and threads.
        scratch_bytes: of each place that can be written.
        files: in each of those.
        file_bytes: one file.
        open_files: per process.
        open_files_in_all: of all its processes together; the kernel holds what waits in pipes and sockets.
        output_bytes: what it may write on standard output and error together, where those are captured.
    """

    memory_bytes: int = 1024 * MIB
    processes: int = 128
    scratch_bytes: int = 64 * MIB
    files: int = 16_384
    file_bytes: int = 64 * MIB
    open_files: int = 512
    open_files_in_all: int = 2048
    output_bytes: int = 16 * MIB


@dataclass(frozen=True, slots=True)
class Mount:
    """A part of the machine that is seen in the sandbox; read-only always.

    Attributes:
        source: what is seen: a folder, a file, or a socket.
        target: where it is seen.
    """

    source: Path
    target: Path

    @classmethod
    def same(cls, path: Path) -> Mount:
        """Return a mount that shows a path where it is."""
        return cls(path, path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """Ports inside a sandbox that lead out of it, or can be reached from outside.

    Attributes:
        program: how `proctor_agent.forward` is run inside.
        out: port → the Unix socket, inside, to which a connection to the port leads.
        inward: ports inside that can be reached from outside, each through a Unix socket on this machine.
    """

    program: tuple[str, ...]
    out: Mapping[int, str] = field(default_factory=dict)
    inward: Mapping[int, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """One sandbox.

    Attributes:
        command: an absolute path inside the sandbox, and arguments.
        environment: all of it.
        mounts: in the order in which they are made: a later one covers an earlier one.
        links: symbolic links, by their absolute path.
        hidden: folders and files inside mounts that look empty.
        limits: what it may use.
        folder: where the command starts.
        ways: its ways out and in; None for a command that needs none, and then it has to read one byte of its standard
            input before it does anything, and to end where there is none: whoever started it is gone.
        isolation: bubblewrap, or an ordinary process for which mounts, links and hidden places mean nothing.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    mounts: tuple[Mount, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    hidden: tuple[Path, ...] = ()
    limits: Limits = field(default_factory=Limits)
    folder: str = SCRATCH
    ways: Ways | None = None
    isolation: Isolation = Isolation.BWRAP
