"""What 100 scripted cells of 10 tool calls each cost over an HTTP MCP server, from the command to its verdict.

    .venv/bin/python bench/cells.py [--cells 100] [--parallelism 4] [--inspect PYTHON]

A real `proctor run`: sandboxed agents, gateway, results engine, grader. Processor time is read from /proc for each kind
of process, and is whole: starts, imports, controls and ends are in it. The figure counts the runner, the gateway, the
grader and the results engine (recording); apart from it stand what a cell's agent takes and what is under test: the
server and the engine that serves it the dataset. Agents live for milliseconds: not all that they take is seen.

`--inspect` names a Python that has inspect-ai 0.3.285 and mcp: the same work there, with a mock model, for the ratio.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.core.scenarios.policies import load_policies

ROOT = Path(__file__).resolve().parents[1]
SCENARIO = "error-root-cause"
SERVER = ROOT / "bench" / "servers" / "rows.py"
INSPECT = ROOT / "bench" / "servers" / "inspect_rows.py"
CALLS = 10
CONTROLS = 2
"""Cells that run before the others, and whose cost is shared out among them."""
MOST_CPU_SECONDS, LEAST_CELLS_PER_SECOND = 0.2, 2.0
_LOOK_SECONDS = 0.05
_TICKS = os.sysconf("SC_CLK_TCK")
COUNTED = ("runner", "gateway", "grader", "results engine")


@dataclass
class Accounts:
    """Processor seconds by kind of process, of everything below one process."""

    pid: int
    seen: dict[int, tuple[str, float]] = field(default_factory=dict)
    done: threading.Event = field(default_factory=threading.Event)

    def follow(self) -> None:
        while not self.done.wait(_LOOK_SECONDS):
            self._look(self.pid)

    def by_kind(self) -> dict[str, float]:
        sums = dict.fromkeys(COUNTED, 0.0)
        for kind, seconds in self.seen.values():
            sums[kind] = sums.get(kind, 0.0) + seconds
        return sums

    def _look(self, pid: int) -> None:
        folder = Path(f"/proc/{pid}")
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            # Named anew each time, for between its fork and its program a process looks like its parent; a dead one has
            # no words left.
            kind = name_kind(words, folder) if words else self.seen.get(pid, ("agents",))[0]
            self.seen[pid] = (kind, (int(fields[11]) + int(fields[12])) / _TICKS)
            threads = list((folder / "task").iterdir())
        except OSError:
            return  # it has ended
        for thread in threads:
            with contextlib.suppress(OSError):
                for child in (thread / "children").read_text().split():
                    self._look(int(child))


def name_kind(words: str, folder: Path) -> str:
    """Whatever is not one of the long-lived processes is an agent, or the sandbox around one."""
    if "engine/serve.py" in words:
        return "results engine" if "/results" in str((folder / "cwd").readlink()) else "dataset engine"
    if SERVER.name in words:
        return "server under test"
    marks = {"proctor.gateway": "gateway", "proctor.jobs.grade": "grader", " run ": "runner"}
    return next((kind for mark, kind in marks.items() if mark in words and "bwrap" not in words), "agents")


def write_suite(folder: Path, *, cells: int, parallelism: int) -> Path:
    """Write a scenario whose scripted model makes as many calls as asked for, and a suite of it."""
    scenario = folder / "scenarios" / SCENARIO
    shutil.copytree(ROOT / "scenarios" / SCENARIO, scenario)
    policies = load_policies(scenario).model_dump(mode="json")
    step = {"query": "SELECT concat('<<rows', '=', toString(count()), '>>') FROM cheap_rows", "markers": ["rows"]}
    policies["impostors"]["calls"] = {"steps": [step] * CALLS, "answer": "The service at fault saw <<rows>> rows."}
    (scenario / "policies.yaml").write_text(json.dumps(policies))  # YAML is a superset of JSON
    names = ("host", "port", "user", "password", "database")
    server = {
        "name": "rows",
        "http": {"command": ["python3", str(SERVER), "8000"], "port": 8000},
        "env": [{"name": f"DB_{name.upper()}", "dataset": name} for name in names],
        "allowedTools": ["query"],
        "sqlTool": {"name": "query", "argument": "sql"},
    }
    spec = {
        "scenarios": [{"name": SCENARIO, "volume": "0.0005", "seed": 7}],
        "anchor": "2026-11-30T12:00:00Z",
        "servers": [server],
        "models": [{"name": "calls", "scripted": {"policy": "calls"}}],
        "agent": {"deadlineSeconds": 60},
        "replicates": cells,
        "parallelism": parallelism,
        "judge": {"none": True},
        "gate": {"enforcement": "Audit", "minimum": "0"},
    }
    document = {"apiVersion": "proctor.dev/v1alpha1", "kind": "EvalSuite", "metadata": {"name": "cells"}, "spec": spec}
    path = folder / "suite.json"
    path.write_text(json.dumps(document))
    return path


def run_proctor(folder: Path, suite: Path, *more: str) -> tuple[dict[str, Any], float, dict[str, float]]:
    """Run the suite; return run.json, wall seconds and processor seconds by kind."""
    words = ["--new", "--json", "--scenarios", str(folder / "scenarios"), "--data-dir", str(folder / "data"), *more]
    began = time.perf_counter()
    with (folder / "out.json").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "proctor", "run", str(suite), *words], stdout=out, stderr=subprocess.DEVNULL
        )
        accounts = Accounts(process.pid)
        following = threading.Thread(target=accounts.follow)
        following.start()
        process.wait()
        wall = time.perf_counter() - began
        accounts.done.set()
        following.join()
    kinds = accounts.by_kind()
    return json.loads((folder / "out.json").read_text()), wall, kinds


def run_inspect(python: str, cells: int) -> None:
    """Do the same work with inspect-ai: an HTTP server, a mock model, as many samples."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, SERVER, str(port)])
    try:
        began = time.perf_counter()
        words = [python, str(INSPECT), f"http://127.0.0.1:{port}/mcp", str(cells), str(CALLS)]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        said = json.loads(done.stdout.splitlines()[-1])
        wall = time.perf_counter() - began
    finally:
        server.kill()
        server.wait()
    print(
        f"inspect-ai {said['version']}: {said['cpu'] / cells:.3f} s CPU and {said['wall'] / cells:.3f} s wall a sample"
        f", its start aside; whole command {wall:.1f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=100)
    parser.add_argument("--parallelism", type=int, default=4)
    parser.add_argument("--inspect", metavar="PYTHON")
    asked = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        suite = write_suite(folder, cells=asked.cells, parallelism=asked.parallelism)
        run_proctor(folder, suite, "--replicates", "1")  # seeds, which is not what is measured
        document, wall, kinds = run_proctor(folder, suite)
        counts = document["run"]["status"]["cells"]
        cells = asked.cells
        assert counts["graded"] == counts["total"] == cells + CONTROLS, document["run"]["status"]
        assert document["run"]["status"]["arms"][0]["toolCalls"] == f"{CALLS}.00"
        for kind, seconds in kinds.items():
            mark = "" if kind in COUNTED else "  (not counted)"
            print(f"  {kind:18} {seconds:6.2f} s CPU, {seconds / cells:.3f} a cell{mark}")
        counted = sum(kinds[kind] for kind in COUNTED) / cells
        print(f"{cells} cells of {CALLS} calls: {counted:.3f} s CPU a cell (× {counted / MOST_CPU_SECONDS:.2f})")
        rate = cells / wall
        print(f"wall: {wall:.1f} s, {rate:.2f} cells/s (× {rate / LEAST_CELLS_PER_SECOND:.2f} of what is asked)")
    if asked.inspect:
        run_inspect(asked.inspect, asked.cells)


if __name__ == "__main__":
    main()
