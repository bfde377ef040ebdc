"""How long whole commands take over finished runs: `python bench/reading.py [--cells 2000] [--repeat 3]`.

Makes two runs of so many cells with ten tool calls each, and a hundred small ones beside them, then times `runs`,
`compare`, `report` and `export` as a person waits for them, Python's start included. Wall time is what is asked for;
processor time is printed beside it, because it says as much on a machine that does other things too.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from proctor.core.ids import CellKey
from proctor.core.trajectory.events import Status
from support.finished_runs import Played, make_finished_run, serve_runs, suite_of

NAMES = ("made-261130-120000-0001", "made-261130-130000-0002")
SMALL_RUNS = 100
TOOL_CALLS = 10


@dataclass(frozen=True)
class Timed:
    """One command.

    Attributes:
        limit: seconds that it may take; None where none is asked for.
    """

    words: tuple[str, ...]
    limit: float | None


COMMANDS = (
    Timed(("runs",), 1.0),
    Timed(("compare", *NAMES), 2.0),
    Timed(("report", NAMES[0]), 5.0),
    Timed(("export", NAMES[0], "--format", "otlp"), None),
)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cells", type=int, default=2000)
    options.add_argument("--repeat", type=int, default=3)
    chosen = options.parse_args()
    print(f"machine: {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        asyncio.run(make_runs(root, chosen.cells))
        for command in COMMANDS:
            report(command, [measure(command, root) for _ in range(chosen.repeat)])


async def make_runs(root: Path, cells: int) -> None:
    """Write the runs' files and rows."""
    first, second = (
        make_finished_run(root, name=name, suite=suite_of(cells), play=play, seed=len(name)) for name in NAMES
    )
    small = make_finished_run(root, name="small-000", suite=suite_of(12))
    for number in range(1, SMALL_RUNS):
        shutil.copytree(small.directory.path, small.directory.path.with_name(f"small-{number:03}"))
    async with serve_runs(root, first, second):
        pass
    os.utime(first.directory.suite_file)  # the large runs are the newest, so that a list shows them
    os.utime(second.directory.suite_file)
    events = sum(record.events for record in first.records)
    size = first.directory.run_file.stat().st_size
    print(f"two runs of {len(first.records):,} cells, {events:,} events each, run.json of {size / 1e6:.1f} MB")


def play(cell: CellKey, chance: random.Random) -> Played:
    """One server's agents are a little worse, and some calls fail."""
    good = ["0.5", "0.75", "0.75", "1"] if cell.server == "left" else ["0.25", "0.5", "0.75"]
    statuses = [Status.OK] * 9 + [Status.AGENT_ERROR]
    tools = tuple((f"tool_{chance.randint(1, 5)}", chance.choice(statuses)) for _ in range(TOOL_CALLS))
    return Played(score=Decimal(chance.choice(good)), tools=tools)


def measure(command: Timed, root: Path) -> tuple[float, float]:
    """Return wall and processor seconds of one run of a command, its engine's included."""
    before, began = _cpu(), time.monotonic()
    line = [sys.executable, "-m", "proctor", *command.words, "--data-dir", str(root)]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began, _cpu() - before


def report(command: Timed, times: list[tuple[float, float]]) -> None:
    """Print the medians."""
    wall, cpu = (statistics.median(values) for values in zip(*times, strict=True))
    line = f"{' '.join(command.words[:1]):<8} {wall:.2f} s wall, {cpu:.2f} s processor"
    if command.limit is not None:
        line += f": {wall / command.limit:.2f} × what is allowed (at most 1), {cpu / command.limit:.2f} × by processor"
    print(line)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
