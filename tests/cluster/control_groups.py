"""The control groups under which every pod of one cluster lives."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from cluster.steps import wait_for

MOUNT = Path("/sys/fs/cgroup")
SECONDS = 30
SHARES = 30 * 1024
"""All pods together live in one group, which would else get no more of the processors than one process beside it."""


def make_control_groups(name: str) -> None:
    """Make the group, in each hierarchy that there is."""
    for hierarchy in _hierarchies():
        group = hierarchy / name
        group.mkdir(exist_ok=True)
        if (group / "cpu.shares").exists():
            (group / "cpu.shares").write_text(str(SHARES))


def control_groups(name: str) -> list[Path]:
    """Return where the group is."""
    return [folder for hierarchy in _hierarchies() if (folder := hierarchy / name).exists()]


def remove_control_groups(name: str) -> None:
    """Remove the group and all below it.

    Raises:
        ClusterError: a process is still in one.
    """
    hint = f"the processes in {name} under {MOUNT}"
    wait_for(f"control groups of {name} removed", lambda: _is_removed(name), seconds=SECONDS, hint=hint)


def _is_removed(name: str) -> bool:
    """Remove what is empty: a process that was killed stays in its group until the kernel is done with it."""
    for top in control_groups(name):
        for folder, _, _ in os.walk(top, topdown=False):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
    return not control_groups(name)


def _hierarchies() -> list[Path]:
    """Return one folder per controller in version 1, one in all in version 2."""
    if (MOUNT / "cgroup.controllers").exists():
        return [MOUNT]
    return [entry for entry in MOUNT.iterdir() if entry.is_dir() and not entry.is_symlink()]
