"""The command line of bubblewrap for a sandbox: pure, so that it can be read and compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from proctor.adapters.sandbox.spec import SANDBOX_UID, SCRATCH, SandboxSpec

_HOST_NAME = "sandbox"


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptors:
    """Open files that bubblewrap is given by number.

    Attributes:
        seccomp: the filter of system calls.
        info: where it writes the process id of the sandbox's first process.
        block: what it waits for before it runs the command.
        userns: a user namespace made beforehand; None to let bubblewrap make one.
    """

    seccomp: int | None = None
    info: int | None = None
    block: int | None = None
    userns: int | None = None


def build_bwrap_argv(
    spec: SandboxSpec,
    descriptors: Descriptors | None = None,
    *,
    command: tuple[str, ...] = (),
    folders: frozenset[Path] = frozenset(),
) -> list[str]:
    """Return the arguments of bubblewrap.

    Args:
        spec: the sandbox.
        descriptors: what is handed over by number.
        command: what is run instead of the spec's own command: the same within its forwarder.
        folders: which of the hidden paths are folders; the others are files.
    """
    descriptors = descriptors or Descriptors()
    return [
        *_namespaces(descriptors),
        *("--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"),
        *("--uid", str(SANDBOX_UID), "--gid", str(SANDBOX_UID), "--hostname", _HOST_NAME),
        *_places(spec, folders),
        *_environment(spec),
        *("--chdir", spec.folder),
        *_numbers(descriptors),
        "--",
        *(command or spec.command),
    ]


def build_outer_argv(bwrap: str, info: int) -> list[str]:
    """Return the command line of an outer bubblewrap, whose command is the sandbox's own bubblewrap.

    Where a sandbox has a user of its own, bubblewrap outside and the first process inside belong to different users,
    and the kernel doesn't let the death of the one end the other. The outer one is all root's. When its first process
    ends, the kernel ends every process in it, whosever it is.

    Args:
        bwrap: the program.
        info: where it writes the process id of its first process.
    """
    return [bwrap, "--unshare-pid", "--die-with-parent", "--dev-bind", "/", "/", "--info-fd", str(info), "--"]


def _namespaces(descriptors: Descriptors) -> Iterator[str]:
    if descriptors.userns is None:
        yield "--unshare-all"
        return
    # `--unshare-all` would make another user namespace.
    yield from ("--userns", str(descriptors.userns))
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup")


def _places(spec: SandboxSpec, folders: frozenset[Path]) -> Iterator[str]:
    size = str(spec.limits.scratch_bytes)
    for path, target in spec.links.items():
        yield from ("--symlink", target, path)
    # The folder of devices is a tmpfs without a limit: only its shared memory may be written, and that has one.
    yield from ("--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev")
    # The one reads like the other, but can't be mapped: a shared mapping of /dev/zero is memory that nobody counts.
    yield from ("--dev-bind", "/dev/full", "/dev/zero")
    yield from ("--perms", "1777", "--size", size, "--tmpfs", "/dev/shm")  # noqa: S108 - inside the sandbox
    yield from ("--perms", "1777", "--size", size, "--tmpfs", SCRATCH)
    for mount in spec.mounts:
        yield from ("--ro-bind", str(mount.source), str(mount.target))
    for hidden in spec.hidden:
        if hidden in folders:
            yield from ("--perms", "0555", "--size", "4096", "--tmpfs", str(hidden), "--remount-ro", str(hidden))
        else:
            yield from ("--ro-bind", "/dev/null", str(hidden))
    yield from ("--remount-ro", "/")


def _environment(spec: SandboxSpec) -> Iterator[str]:
    for name, value in spec.environment.items():
        yield from ("--setenv", name, value)


def _numbers(descriptors: Descriptors) -> Iterator[str]:
    for option, number in (
        ("--seccomp", descriptors.seccomp),
        ("--info-fd", descriptors.info),
        ("--block-fd", descriptors.block),
    ):
        if number is not None:
            yield from (option, str(number))
