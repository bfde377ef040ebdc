"""The control groups under which every pod of one cluster lives."""

from __future__ import annotations

import os
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")


def make_control_groups(name: str) -> None:
    """Make the group, in each hierarchy that there is."""
    for hierarchy in _hierarchies():
        (hierarchy / name).mkdir(exist_ok=True)


def control_groups(name: str) -> list[Path]:
    """Return where the group is."""
    return [folder for hierarchy in _hierarchies() if (folder := hierarchy / name).exists()]


def remove_control_groups(name: str) -> None:
    """Remove the group and all below it; no process may be in them."""
    for top in control_groups(name):
        for folder, _, _ in os.walk(top, topdown=False):
            Path(folder).rmdir()


def _hierarchies() -> list[Path]:
    """Return one folder per controller in version 1, one in all in version 2."""
    if (MOUNT / "cgroup.controllers").exists():
        return [MOUNT]
    return [entry for entry in MOUNT.iterdir() if entry.is_dir() and not entry.is_symlink()]
