"""How fast datasets are built and found: `python bench/seeding.py [--volume 1] [--partitions]`.

Prints each figure as a ratio to what is asked for, and the machine it was measured on. A run at volume 1 takes some
minutes and wants the machine for itself.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import resource
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from proctor.adapters.clickhouse import datasets
from proctor.adapters.clickhouse.session import HttpSession
from proctor.core.digests import digest_json
from proctor.core.scenarios.recipe import load_recipe
from proctor.core.seeding.plan import compile_plan
from proctor.local.dataset_files import SeedRequest
from proctor.local.datasets import ensure_dataset
from proctor.local.engine import ADMIN_ONLY, Engine
from proctor.settings import shipped_scenarios_dir

SCENARIO = shipped_scenarios_dir() / "error-root-cause"
ANCHOR = datetime(2026, 11, 30, 12, tzinfo=UTC)
ROWS_PER_SECOND = 100_000
SMALL_SECONDS = 5.0
REUSE_SECONDS = 0.5
ENGINE_GIB = 4.0


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--volume", default="1", help="of the large build")
    options.add_argument("--partitions", action="store_true", help="compare digests of 1, 4, 7 parts, 1 and 2 threads")
    chosen = options.parse_args()
    python = platform.python_version()
    print(f"machine: {os.cpu_count()} cores, {_memory_gib():.0f} GiB, {platform.machine()}, Python {python}")
    with tempfile.TemporaryDirectory() as folder:
        small = measure_command(Path(folder), "0.01")
        print_ratio("seed at volume 0.01", small, SMALL_SECONDS)
        print_ratio("reuse of it", measure_command(Path(folder), "0.01"), REUSE_SECONDS)
    with tempfile.TemporaryDirectory() as folder:
        measure_build(Path(folder), Decimal(chosen.volume))
    if chosen.partitions:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(compare_partitions(Path(folder), Decimal(chosen.volume)))


def measure_command(folder: Path, volume: str) -> float:
    """Time the command as a person waits for it, Python's start included."""
    began = time.monotonic()
    command = [sys.executable, "-m", "proctor", "dataset", "seed", "error-root-cause"]
    subprocess.run([*command, "--volume", volume, "--data-dir", str(folder)], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def measure_build(folder: Path, volume: Decimal) -> None:
    """Build a dataset, and watch the engine's memory."""
    request = SeedRequest(scenario=SCENARIO, seed=42, anchor=ANCHOR, volume=volume)
    peak = PeakMemory()
    with peak:
        record = asyncio.run(ensure_dataset(request, data_dir=folder))
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    rate = record.rows / record.seconds
    print(f"seed at volume {volume}: {record.rows:,} rows in {record.seconds:.1f} s, digest {record.digest[:16]}")
    print(f"  {rate:,.0f} rows/s: {rate / ROWS_PER_SECOND:.2f} × what is asked for (at least 1)")
    cpu = spent.ru_utime + spent.ru_stime
    print(f"  engine: {cpu:.0f} CPU-seconds, {record.rows / cpu:,.0f} rows per CPU-second")
    print(f"  engine's peak: {peak.gib:.2f} GiB: {peak.gib / ENGINE_GIB:.2f} × what is allowed (at most 1)")


async def compare_partitions(folder: Path, volume: Decimal) -> None:
    """Load the same rows in several ways and compare their digests."""
    recipe = load_recipe(SCENARIO)
    plan = compile_plan(recipe, seed=42, anchor=ANCHOR, volume=volume)
    found = {}
    async with Engine.start(folder / "data", access=ADMIN_ONLY, log=folder / "engine.log") as engine:
        session = HttpSession(engine.endpoint)
        for number, (parts, threads) in enumerate(((1, 1), (1, 2), (4, 2), (7, 2))):
            database = f"ds_{number:016x}_1"
            await datasets.create_tables(session, plan, database)
            for part in range(parts):
                await datasets.load_rows(session, plan, database, part=part, parts=parts, threads=threads)
            await datasets.fill_rollups(session, database, threads=threads)
            digests = await datasets.digest_database(session, plan.tables, database)
            found[parts, threads] = digest_json({name: one.digest for name, one in digests.items()})
            await session.run(f"DROP DATABASE `{database}`")
    print(f"digests for (parts, threads) {', '.join(map(str, found))}: {len(set(found.values()))} different (asked: 1)")


def print_ratio(what: str, seconds: float, limit: float) -> None:
    print(f"{what}: {seconds:.2f} s: {seconds / limit:.2f} × what is allowed (at most 1)")


class PeakMemory(threading.Thread):
    """Follows the resident memory of the engines that this process starts."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.gib = 0.0
        self._done = threading.Event()

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self.join()

    def run(self) -> None:
        while not self._done.wait(0.2):
            for status in Path("/proc").glob("[0-9]*/status"):
                self.gib = max(self.gib, _resident_gib(status))


def _resident_gib(status: Path) -> float:
    try:
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
    except OSError:
        return 0.0  # it ended while it was looked at
    is_ours = fields.get("PPid", "").strip() == str(os.getpid())
    return int(fields.get("VmHWM", "0 kB").split()[0]) / (1 << 20) if is_ours else 0.0


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)


if __name__ == "__main__":
    main()
