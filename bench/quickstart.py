"""What the main job costs on this machine: seeding first, then the same run again with its dataset in place.

    .venv/bin/python bench/quickstart.py

Each figure is also a ratio to starting one server under test and listing its tools, outside any sandbox: most of a
scripted cell is that start.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
SUITE = ROOT / "examples" / "quickstart.yaml"
START_SERVER = "import clickscope.server, mcp_clickhouse.mcp_server"


def spent_on(command: list[str | Path], folder: Path) -> tuple[float, float]:
    """Return wall seconds and CPU seconds of a command and all it started and waited for."""
    before, started = os.times(), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PROCTOR_DATA_DIR": str(folder)})
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - started, cpu


def main() -> None:
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spent_on([sys.executable, "-c", START_SERVER], folder)
        start, _ = spent_on([sys.executable, "-c", START_SERVER], folder)
        print(f"importing both servers under test: {start:.2f} s")
        run: list[str | Path] = [BIN / "proctor", "run", SUITE, "--new"]
        for what in ("with seeding", "warm"):
            wall, cpu = spent_on(run, folder)
            print(f"quickstart, {what}: {wall:.1f} s wall ({wall / start:.0f} starts), at least {cpu:.1f} s CPU")


if __name__ == "__main__":
    main()
