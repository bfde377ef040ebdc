"""The Linux namespaces in which the node lives, and the first process there: a supervisor of its programs."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from cluster.faults import ClusterError
from cluster.packages import SYSTEM_PATH
from cluster.places import Places
from cluster.steps import wait_for

SECONDS_TO_CHANGE = 30


def write_service(places: Places, name: str, command: Sequence[str]) -> None:
    """Describe a program to the supervisor; it starts when told to, and again when it dies."""
    folder = places.services / name
    folder.mkdir(parents=True)
    log = shlex.quote(str(places.logs / f"{name}.log"))
    script = folder / "run"
    script.write_text(
        f"#!/bin/sh\nexec >>{log} 2>&1\nexport PATH={SYSTEM_PATH} HOME=/root\nexec {shlex.join(command)}\n"
    )
    script.chmod(0o700)
    (folder / "down").touch()


def enter(places: Places) -> int:
    """Start the supervisor in new namespaces and return its process id, as this machine sees it."""
    log = places.logs / "supervisor.log"
    with log.open("wb") as output:
        subprocess.run(
            [
                *("setsid", "--fork", "unshare", "--mount", "--propagation=private", "--net", "--pid", "--fork"),
                *("--kill-child", "--mount-proc", *_supervise(places)),
            ],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
        )
    deadline = time.monotonic() + SECONDS_TO_CHANGE
    while (pid := supervisor(places)) is None or not _listens(places):
        if time.monotonic() > deadline:
            raise ClusterError(f"no namespaces for the node: {log.read_text().strip()}")
        time.sleep(0.02)
    return pid


def supervisor(places: Places) -> int | None:
    """Return the process id of the supervisor of this state folder, if it runs."""
    return next((pid for pid in processes() if command_line(pid) == _supervise(places)), None)


def _listens(places: Places) -> bool:
    return all((service / "supervise" / "ok").exists() for service in places.services.iterdir())


def _supervise(places: Places) -> list[str]:
    return ["runsvdir", "-P", str(places.services)]


def processes() -> list[int]:
    """Return every process of this machine."""
    return sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def command_line(pid: int) -> list[str]:
    """Return the words with which a process was started; none when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def _process_namespace(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""


def run_inside(pid: int, *command: str) -> None:
    """Run a command where the node is.

    Raises:
        ClusterError: it failed.
    """
    words = ["nsenter", f"--target={pid}", "--mount", "--net", "--pid", *command]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        raise ClusterError(f"in the node: {shlex.join(command)}: {done.stderr.strip()}")


def control(places: Places, action: str, *names: str) -> None:
    """Tell the supervisor to bring services `up`, `down` or to `restart` them, and wait until it has.

    Raises:
        ClusterError: it did not.
    """
    folders = [str(places.services / name) for name in names]
    done = subprocess.run(["sv", "-w", "30", action, *folders], check=False, capture_output=True, text=True)
    if done.returncode:
        raise ClusterError(f"sv {action}: {done.stdout.strip()} {done.stderr.strip()}")


def kill(places: Places, name: str) -> None:
    """End a program without a word, as a crash does; return once the supervisor has started it again.

    Raises:
        ClusterError: it has not.
    """
    record = places.services / name / "supervise" / "pid"
    before = record.read_text()
    control(places, "kill", name)
    wait_for(
        f"{name} anew",
        lambda: record.read_text() not in {"", before},
        seconds=SECONDS_TO_CHANGE,
        hint=str(places.logs / f"{name}.log"),
    )


def end(places: Places) -> None:
    """Kill the supervisor; the kernel ends everything else that lives in its namespaces.

    Raises:
        ClusterError: something is still there.
    """
    pid = supervisor(places)
    if pid is None:
        return
    home = _process_namespace(pid)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + SECONDS_TO_CHANGE
    while remaining := [pid for pid in processes() if _process_namespace(pid) == home]:
        if time.monotonic() > deadline:
            raise ClusterError(f"processes that don't end: {remaining}")
        time.sleep(0.05)
