"""Recording while the engine, or the recorder, is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from proctor.adapters.clickhouse.results import RecordBatch, ResultsStore
from proctor.adapters.clickhouse.spool import SpooledWriter, SpoolLimits
from proctor.local.engine import Engine, EngineLimits
from support.results import make_attempt, make_batch, make_key

pytestmark = pytest.mark.engine

LIMITS = EngineLimits(memory_bytes=2 << 30, threads=2)
QUICK = SpoolLimits(linger_seconds=0.01, longest_delay=0.2, batch_bytes=20_000)

RECORDER = """
import asyncio, sys
from pathlib import Path
from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.results import ResultsStore
from proctor.adapters.clickhouse.spool import SpooledWriter, SpoolLimits
from support.results import make_batch, make_key

async def main():
    store = ResultsStore(Endpoint("127.0.0.1", int(sys.argv[2]), "admin", sys.stdin.readline().strip()))
    writer = SpooledWriter(store, Path(sys.argv[1]), SpoolLimits(linger_seconds=0.0))
    await writer.start()
    seq = 0
    while True:
        seq += 1
        writer.submit(make_batch(make_key(), seq=seq, bodies=(b"body %d" % seq,)))
        print(seq, flush=True)
        await asyncio.sleep(0)

asyncio.run(main())
"""


async def test_an_engine_killed_while_recording_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """Faults, ClickHouse killed while recording; M-D6: every row is there exactly once."""
    key, data, log = make_key(), tmp_path / "data", tmp_path / "engine.log"
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(Engine.start(data, log=log, limits=LIMITS))
        store = ResultsStore(first.endpoint)
        stack.push_async_callback(store.close)
        await store.migrate()
        writer = SpooledWriter(store, tmp_path / "spool", QUICK)
        await writer.start()
        for seq in range(1, 401):
            writer.submit(make_batch(key, seq=seq, bodies=(b"%d" % seq * 1000,)))
            await asyncio.sleep(0)
            if seq == 200:
                os.kill(first.pid, signal.SIGKILL)
        assert await first.wait() == -signal.SIGKILL
        writer.submit(RecordBatch(attempts=(make_attempt(key),)))
        settled = asyncio.create_task(writer.settled(key))
        await stack.enter_async_context(Engine.start(data, log=log, limits=LIMITS, again=first))
        await asyncio.wait_for(settled, 60)
        await writer.close()
        events = await store.events(key)
        assert [event.seq for event in events] == list(range(1, 401))
        assert len(await store.blobs([event.request_digest for event in events] + [*_digests(400)])) == 400
        assert await store.attempts(key.run) == (make_attempt(key),)


def _digests(count: int) -> list[str]:
    return [digest for seq in range(1, count + 1) for digest in make_batch(seq=seq, bodies=(b"%d" % seq * 1000,)).blobs]


@pytest.mark.parametrize("is_store_away", [True, False], ids=["store-away", "store-there"])
async def test_a_recorder_killed_at_any_point_loses_nothing_it_took(tmp_path: Path, *, is_store_away: bool) -> None:
    """M-D6: whatever `submit` returned for is stored by whoever starts on the folder, once."""
    async with Engine.start(tmp_path / "data", log=tmp_path / "engine.log", limits=LIMITS) as engine:
        store = ResultsStore(engine.endpoint)
        await store.migrate()
        spool = tmp_path / "spool"
        port = 1 if is_store_away else engine.endpoint.port
        taken = await _record_and_die(spool, port, engine.endpoint.password, after=300)
        writer = SpooledWriter(store, spool, QUICK)
        await writer.start()
        await writer.settled(make_key())
        await writer.close()
        events = await store.events(make_key())
        await store.close()
    assert len(events) >= taken
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


async def _record_and_die(spool: Path, port: int, password: str, *, after: int) -> int:
    """Run a recorder, kill it without warning, and return the last batch that it reported as taken."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", RECORDER, str(spool), str(port)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert process.stdin
    assert process.stdout
    process.stdin.write(password.encode() + b"\n")
    taken = 0
    while line := await process.stdout.readline():
        taken = int(line)
        if taken == after:
            process.kill()
    await process.wait()
    return taken
