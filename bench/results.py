"""How fast results are taken and stored: `python bench/results.py [--batches N]`; prints figures of this machine."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from proctor.adapters.clickhouse.results import RecordBatch, ResultsStore
from proctor.adapters.clickhouse.spool import SpooledWriter
from proctor.local.engine import Engine, clone_dataset
from support.results import make_blobs, make_event, make_key

BODY_BYTES = 8_000  # a tool result, as the servers of the quickstart send them
MOST_MILLISECONDS = 1.0


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=5000)
    count = parser.parse_args().batches
    print(f"machine: {os.cpu_count()} cores, {platform.machine()}, Linux {platform.release()}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        began = time.perf_counter()
        async with Engine.start(root / "data", log=root / "engine.log") as engine:
            print(f"engine started: {time.perf_counter() - began:.2f} s")
            store = ResultsStore(engine.endpoint)
            print(f"driver imported, schema made: {await _timed(store.migrate()):.2f} s")
            await _record(store, root / "spool", count)
            await store.close()
            began = time.perf_counter()
        print(f"engine stopped: {time.perf_counter() - began:.2f} s")
        began = time.perf_counter()
        clone_dataset(root / "data", root / "clone")
        print(f"data folder cloned: {time.perf_counter() - began:.3f} s")


async def _timed(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


async def _record(store: ResultsStore, spool: Path, count: int) -> None:
    writer = SpooledWriter(store, spool)
    await writer.start()
    key, durations = make_key(), []
    began = time.perf_counter()
    for seq in range(1, count + 1):
        body = f"{seq} ".encode() * (BODY_BYTES // (len(str(seq)) + 1))
        batch = RecordBatch(events=((key, make_event(seq)),), blobs=make_blobs(body))
        before = time.perf_counter()
        writer.submit(batch)
        durations.append((time.perf_counter() - before) * 1000)
        await asyncio.sleep(0)
    await writer.settled(key)
    seconds = time.perf_counter() - began
    await writer.close()
    durations.sort()
    median, late = durations[count // 2], durations[count * 99 // 100]
    print(f"submit: {median:.3f} ms p50, {late:.3f} ms p99 (at most {MOST_MILLISECONDS} ms p50: × {median:.2f})")
    print(f"stored: {2 * count / seconds:,.0f} rows/s (an event and a body of {BODY_BYTES:,} bytes each)")
    assert len(await store.events(key)) == count


if __name__ == "__main__":
    asyncio.run(main())
