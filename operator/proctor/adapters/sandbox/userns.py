"""A user namespace for each sandbox, with an owner of its own, where this process is root.

The kernel counts processes by namespace and user, but exempts the machine's root from that limit, whatever it is
called inside. So each sandbox of root's gets a user that exists nowhere else: its fork bomb hits its own limit, and
its processes own nothing outside. Root's files stay readable to bubblewrap while it sets up, as somebody else's.
Without root a sandbox's namespace has the caller as its owner, and its count is its own already.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

from proctor.adapters.sandbox.spec import SANDBOX_UID
from proctor.errors import Retryable

_FIRST_USER = 1_879_048_192
"""Far above what systems and containers hand out; a process id is added, which seldom repeats. Counts are kept
by namespace, so a repetition only lets two sandboxes be the same stranger to this machine."""

_MAX_PID = 4_194_304
"""The kernel's own upper limit."""

_NEEDED_RIGHTS = 1 << 6 | 1 << 7 | 1 << 21
"""CAP_SETGID and CAP_SETUID to say who is who, CAP_SYS_ADMIN for an outer process namespace."""

_MACHINES_ROOT = 65533
"""What the machine's root is called inside: not 0, for which bubblewrap would give up its rights too early."""


def make_user_namespace(bwrap: Path) -> int | None:
    """Return a descriptor of a new user namespace, for the caller to close; None where none is needed.

    Raises:
        Retryable: it can't be made.
    """
    return _make(bwrap) if os.geteuid() == 0 and _has_rights() and _has_users() else None


def _has_rights() -> bool:
    """Tell whether this root has what it takes: in a container it may be root by name."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "CapEff":
            return int(value, 16) & _NEEDED_RIGHTS == _NEEDED_RIGHTS
    return False


def _has_users() -> bool:
    """Tell whether the sandboxes' users exist here: a container's root may be somebody's user, and not exempt."""
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        first, _, count = (int(word) for word in line.split())
        if first <= _FIRST_USER and first + count > _FIRST_USER + _MAX_PID:
            return True
    return False


def _make(bwrap: Path) -> int:
    info_read, info_write = os.pipe()
    block_read, block_write = os.pipe()
    # It waits for its map of users, which it never sees: all that is wanted of it is its namespace.
    words = ["--unshare-user", "--userns-block-fd", block_read, "--info-fd", info_write, "--ro-bind", "/", "/", "true"]
    process = subprocess.Popen(
        [str(bwrap), *map(str, words)], pass_fds=(block_read, info_write), env={}, stderr=subprocess.DEVNULL
    )
    os.close(info_write)
    os.close(block_read)
    pid = None
    try:
        pid = _read_pid(info_read)
        return _open_mapped(pid)
    except (OSError, ValueError, KeyError) as e:
        raise Retryable(f"sandbox: cannot make a user namespace for it: {e}") from e
    finally:
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
        # Its end lets bubblewrap go on and see that its child is gone; our own death would do the same. Killing
        # bubblewrap instead would leave that child waiting for ever.
        os.close(block_write)
        os.close(info_read)
        process.wait()


def _read_pid(info: int) -> int:
    text = b""
    while b"}" not in text:
        piece = os.read(info, 4096)
        if not piece:
            raise ValueError("bubblewrap ended early")
        text += piece
    return int(json.loads(text)["child-pid"])


def _open_mapped(pid: int) -> int:
    mapping = f"{SANDBOX_UID} {_FIRST_USER + pid} 1\n{_MACHINES_ROOT} 0 1\n"
    for name in ("uid_map", "gid_map"):
        Path(f"/proc/{pid}/{name}").write_text(mapping)
    return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
