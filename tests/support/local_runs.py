"""Makers of whole runs on one machine: small suites, and the command as people start it."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SERVERS = Path(__file__).parent / "mcp_servers"
SQL_SERVER = SERVERS / "sql_server.py"
ODD_SERVER = SERVERS / "odd_server.py"
_PR_SET_CHILD_SUBREAPER = 36
_SECONDS = 220


def sql_server(name: str, *arguments: str) -> dict[str, Any]:
    fields = ("HOST", "host"), ("PORT", "port"), ("USER", "user"), ("PASSWORD", "password"), ("NAME", "database")
    return {
        "name": name,
        "stdio": {"command": ["python3", str(SQL_SERVER), *arguments]},
        "env": [{"name": f"DB_{variable}", "dataset": field_name} for variable, field_name in fields],
        "allowedTools": ["query"],
        "sqlTool": {"name": "query", "argument": "sql"},
    }


def odd_server(name: str, *arguments: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "stdio": {"command": ["python3", str(ODD_SERVER), *arguments]},
        "deniedTools": [],
    } | changes


def make_suite(name: str = "small", **changes: Any) -> dict[str, Any]:
    """A suite at a tiny volume, with one quick server."""
    spec: dict[str, Any] = {
        "scenarios": [{"name": "error-root-cause", "volume": "0.0005", "seed": 7}],
        "anchor": "2026-11-30T12:00:00Z",
        "servers": [sql_server("sql")],
        "models": [
            {"name": "loudest", "scripted": {"policy": "loudest"}},
            {"name": "newest", "scripted": {"policy": "newest"}},
        ],
        "agent": {"deadlineSeconds": 60},
        "replicates": 2,
        "parallelism": 3,
        "judge": {"none": True},
        "gate": {"enforcement": "Audit", "minimum": "0"},
    }
    return {
        "apiVersion": "proctor.dev/v1alpha1",
        "kind": "EvalSuite",
        "metadata": {"name": name},
        "spec": spec | changes,
    }


@dataclass
class Machine:
    """A data dir, and the commands that work on it."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()
    """What commands are started through."""
    seen: Path | None = None
    """The root as this process sees it, if commands see another disk there."""

    @property
    def data_dir(self) -> Path:
        return (self.seen or self.root) / "data"

    def write_suite(self, suite: dict[str, Any]) -> Path:
        # Beside a disk of its own, not on it: what fills the one must not touch the other.
        path = (self.root.parent if self.seen else self.root) / f"{suite['metadata']['name']}.json"
        path.write_text(json.dumps(suite))  # YAML is a superset of JSON
        return path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start `proctor` with these arguments, in a process group of its own."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ANTHROPIC")}
        return subprocess.Popen(
            [*self.prefix, sys.executable, "-m", "proctor", *arguments, "--data-dir", str(self.root / "data")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=environment | self.environment,
        )

    def call(self, *arguments: str, timeout: float = _SECONDS) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()  # or it would go on beside all other tests
            process.communicate()
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def runs(self) -> list[Path]:
        return sorted((self.data_dir / "runs").glob("*/run.json"), key=lambda path: path.stat().st_mtime_ns)

    def last_run(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.runs()[-1].read_text())
        return document


def scores_of(document: dict[str, Any]) -> dict[str, str | None]:
    return {cell["cell"]: cell.get("score") for cell in document["cells"]}


def adopt_orphans() -> None:
    """Become the parent of whatever loses its own, so that nothing that a killed run leaves can hide."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap_orphans(before: frozenset[int]) -> frozenset[int]:
    """Reap adopted processes that have ended; return those that have ended now.

    Args:
        before: what an earlier call returned. Only what had ended by then is reaped: whoever started a process of its
            own and waits for it, as asyncio does, has its status long since.
    """
    ended = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            ended |= {int(pid) for pid in (task / "children").read_text().split() if _command_of(int(pid)) is None}
    for pid in ended & before:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    return frozenset(ended - before)


def list_descendants(pid: int) -> dict[int, str]:
    """Return all living processes below one, with their command lines."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                stat = (folder / "stat").read_text()
            except OSError:
                continue
            state, parent = stat.rpartition(")")[2].split()[:2]
            if state != "Z":
                parents.setdefault(int(parent), []).append(int(folder.name))
    found: dict[int, str] = {}
    rest = [pid]
    while rest:
        for child in parents.get(rest.pop(), []):
            try:
                words = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ")
            except OSError:
                continue
            found[child] = words.decode("utf-8", "replace")
            rest.append(child)
    return found


def wait_until_gone(pids: set[int], *, seconds: float = 20.0) -> dict[int, str]:
    """Wait for processes to end; return those that did not."""
    limit = time.monotonic() + seconds
    while True:
        left = {pid: words for pid in pids if (words := _command_of(pid)) is not None}
        if not left or time.monotonic() > limit:
            return left
        time.sleep(0.05)


def _command_of(pid: int) -> str | None:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return None
    return None if state in "ZX" else words


def find_process(process: subprocess.Popen[str], words: str, *, seconds: float = 60.0) -> int:
    """Wait until a run has a process whose command line has these words; return its id."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        for pid, command in list_descendants(process.pid).items():
            if words in command:
                return pid
        if process.poll() is not None:
            out, err = process.communicate()
            raise AssertionError(f"the run ended before it had {words!r}: {out}\n{err}")
        time.sleep(0.05)
    raise AssertionError(f"no process with {words!r}: {list_descendants(process.pid)}")


def find_engine(process: subprocess.Popen[str], folder: str, *, seconds: float = 60.0) -> int:
    """Wait until a run serves an engine whose data folder has these words in its path; return its process."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit and process.poll() is None:
        for pid, command in list_descendants(process.pid).items():
            if "engine/serve.py" in command and folder in folder_of(pid):
                return pid
        time.sleep(0.02)
    raise AssertionError(f"no engine on {folder!r}")


def folder_of(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:
        return ""


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
