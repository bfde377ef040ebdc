"""What several workers and several servers do to seeding, and what a row costs: `python bench/scale.py [--volume 0.1]`.

Each way builds the same dataset twice; the faster time counts. Everything runs on this one machine, so the best that
workers and shards can do here is to cost nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from proctor.adapters.clickhouse.registry import DatasetRegistry, SeedOrder
from proctor.adapters.clickhouse.session import SqlSession
from proctor.adapters.clickhouse.shards import Shards
from proctor.core.scenarios.recipe import load_recipe
from proctor.core.seeding.identity import dataset_hash
from proctor.core.seeding.plan import compile_plan
from proctor.core.seeding.record import DatasetRecord
from proctor.core.seeding.share import Share
from proctor.settings import shipped_scenarios_dir
from support.shards import run_pair

SCENARIO = shipped_scenarios_dir() / "error-root-cause"
ANCHOR = datetime(2026, 11, 30, 12, tzinfo=UTC)
TIMES = 2


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--volume", type=Decimal, default=Decimal("0.1"))
    volume = options.parse_args().volume
    print(f"machine: {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare(Path(folder), volume))


async def compare(folder: Path, volume: Decimal) -> None:
    """Build the dataset in each way, on servers that are alike."""
    async with run_pair(folder) as shards:
        alone = Shards(shards.sessions[:1])
        ways: dict[str, Callable[[], Awaitable[tuple[DatasetRecord, float]]]] = {
            "one worker of two threads": lambda: build(DatasetRegistry(alone, "default"), volume, 2),
            "two workers of one thread": lambda: build_parts(DatasetRegistry(alone, "default"), volume),
            "two shards, a thread each": lambda: build(DatasetRegistry(shards, "default"), volume, 1),
        }
        best, digests = dict.fromkeys(ways, float("inf")), set()
        for _ in range(TIMES):
            for name, way in ways.items():
                record, seconds = await way()
                best[name] = min(best[name], seconds)
                digests.add(record.digest)
                if name == "one worker of two threads":
                    costs = await row_costs(alone.first, record)
                await DatasetRegistry(shards, "default").remove(record.hash)
    first = next(iter(best.values()))
    for name, seconds in best.items():
        print(
            f"{name}: {seconds:.1f} s, {record.rows / seconds:,.0f} rows/s: {seconds / first:.2f} × one worker's time"
        )
    print(f"digests: {len(digests)} different (asked: 1)")
    for line in costs:
        print(line)


async def build(registry: DatasetRegistry, volume: Decimal, threads: int) -> tuple[DatasetRecord, float]:
    began = time.monotonic()
    return await registry.ensure(make_order(volume, threads)), time.monotonic() - began


async def build_parts(registry: DatasetRegistry, volume: Decimal) -> tuple[DatasetRecord, float]:
    began, order = time.monotonic(), make_order(volume, 1)
    record, _ = await asyncio.gather(*(registry.ensure_part(order, Share(part, 2)) for part in range(2)))
    assert record is not None
    return record, time.monotonic() - began


def make_order(volume: Decimal, threads: int) -> SeedOrder:
    recipe = load_recipe(SCENARIO)
    plan = compile_plan(recipe, seed=42, anchor=ANCHOR, volume=volume)
    return SeedOrder(dataset_hash(recipe, 42, ANCHOR, volume), "scale", plan, None, threads)


async def row_costs(session: SqlSession, record: DatasetRecord) -> list[str]:
    """Say what each table takes on disk."""
    rows = await session.fetch(
        "SELECT table, sum(rows), sum(bytes_on_disk), sum(secondary_indices_compressed_bytes) FROM system.parts"  # noqa: S608 - our own name
        f" WHERE active AND database = '{record.database}' GROUP BY table ORDER BY table"
    )
    return [
        f"{table}: {int(str(count)):,} rows, {int(str(size)) / int(str(count)):.0f} bytes a row on disk,"
        f" of which skip indexes {int(str(indexes)) / int(str(count)):.0f}"
        for table, count, size, indexes in rows
    ]


if __name__ == "__main__":
    main()
