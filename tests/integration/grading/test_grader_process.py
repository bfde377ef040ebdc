"""The grader as the process that it is, over a real store."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from proctor.adapters.clickhouse.results import RecordBatch, ResultsStore
from proctor.core.digests import digest_bytes
from proctor.core.scenarios.reference import load_reference
from proctor.local.engine import Engine, EngineLimits
from support.judges import honest
from support.messages_server import KEY, MODEL, MessagesServer, serve_messages
from support.playing import SCENARIOS
from support.results import make_attempt, make_key

pytestmark = pytest.mark.engine

SCENARIO = "error-root-cause"
ROOT = Path(__file__).resolve().parents[3]
RIGHT = b"Root cause: payments-api can't connect to payments-pg-2.db.fernway.internal (DBTimeout)."
LIMITS = EngineLimits(memory_bytes=2 << 30, threads=2)


def make_config(store: Engine, summary: Path, judge: MessagesServer | None = None) -> bytes:
    endpoint = store.endpoint
    secret = {"name": "judge", "key": "api-key"}
    judged = {"anthropic": {"model": MODEL, "secretKeyRef": secret, "baseUrl": judge.url}} if judge else {"none": True}
    return json.dumps(
        {
            "run": "run-1",
            "suite": {
                "scenarios": [{"name": SCENARIO, "volume": "0.01"}],
                "anchor": "2026-11-30T12:00:00Z",
                "servers": [{"name": "s", "stdio": {"command": ["s"]}, "allowedTools": ["q"]}],
                "models": [{"name": "newest", "scripted": {"policy": "newest"}}],
                "judge": judged,
                "gate": {"enforcement": "Audit"},
            },
            "store": {
                "host": endpoint.host,
                "port": endpoint.port,
                "user": endpoint.user,
                "password": endpoint.password,
                "database": "proctor",
            },
            "scenarios": {
                SCENARIO: {
                    "directory": str(SCENARIOS / SCENARIO),
                    "facts": load_reference(SCENARIOS / SCENARIO).facts,
                }
            },
            "summary": str(summary),
            "secrets": {"judge/api-key": KEY} if judge else {},
            "allowedHosts": [judge.host] if judge else [],
        }
    ).encode()


@asynccontextmanager
async def grader(config: bytes) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "proctor.jobs.grade",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={"PYTHONPATH": str(ROOT / "operator"), "PATH": ""},
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(config + b"\n")
    await process.stdin.drain()
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def graded(process: asyncio.subprocess.Process, count: int) -> None:
    """Wait until the grader says that it has graded so many."""
    assert process.stdout is not None
    while json.loads(await process.stdout.readline())["graded"] < count:
        pass


async def put(store: ResultsStore, replicate: int) -> None:
    record = make_attempt(make_key(replicate=replicate), answer_digest=digest_bytes(RIGHT), agent_tool_errors=0)
    await store.write(RecordBatch(blobs={digest_bytes(RIGHT): RIGHT}, attempts=(record,)))


def grades(summary: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(summary.read_bytes())["grades"]
    return found


async def test_a_grader_that_is_killed_is_gone_on_from(tmp_path: Path) -> None:
    """P27: attempts are graded as they end; after kill -9 a new grader gives the same grades, none twice."""
    summary = tmp_path / "summary.json"
    async with Engine.start(tmp_path / "data", log=tmp_path / "engine.log", limits=LIMITS) as engine:
        store = ResultsStore(engine.endpoint)
        await store.migrate()
        await put(store, 1)
        async with grader(make_config(engine, summary)) as first:
            await graded(first, 1)
            before = grades(summary)
            first.kill()
        await put(store, 2)
        async with grader(make_config(engine, summary)) as second:
            await graded(second, 2)
            assert second.stdin is not None
            second.stdin.close()
            assert await second.wait() == 0
        rows = await store.grades("run-1")
        await store.close()
    assert len(rows) == 2
    assert before.items() <= grades(summary).items()


async def test_a_grader_that_is_killed_asks_its_judge_only_for_the_rest(tmp_path: Path) -> None:
    """P22, P27: one trial and one judgement per answer, whatever is killed; the key is in no file and on no line."""
    summary = tmp_path / "summary.json"
    with serve_messages(honest()) as judge:
        async with Engine.start(tmp_path / "data", log=tmp_path / "engine.log", limits=LIMITS) as engine:
            store = ResultsStore(engine.endpoint)
            await store.migrate()
            await put(store, 1)
            config = make_config(engine, summary, judge)
            async with grader(config) as first:
                await graded(first, 1)
                before = json.loads(summary.read_bytes())
                first.kill()
            await put(store, 2)
            async with grader(config) as second:
                await graded(second, 2)
                assert second.stdin is not None
                second.stdin.close()
                assert await second.wait() == 0
                assert second.stderr is not None
                assert KEY.encode() not in await second.stderr.read() + summary.read_bytes()
            rows = await store.grades("run-1")
            await store.close()
    assert len(judge.seen) == 6 + 2
    assert {row.judge_model for row in rows} == {MODEL}
    assert len({row.judge_prompt_digest for row in rows}) == 1
    assert before["grades"].items() <= grades(summary).items()
    assert json.loads(summary.read_bytes())["judgeDigest"] == before["judgeDigest"]


async def test_clickhouse_killed_while_grading(tmp_path: Path) -> None:
    """Faults, ClickHouse killed while grading: the grader waits, and grades when it is back."""
    summary, data, log = tmp_path / "summary.json", tmp_path / "data", tmp_path / "engine.log"
    async with Engine.start(data, log=log, limits=LIMITS) as engine:
        store = ResultsStore(engine.endpoint)
        await store.migrate()
        await put(store, 1)
        async with grader(make_config(engine, summary)) as process:
            await graded(process, 1)
            await put(store, 2)
            await store.close()
            os.kill(engine.pid, signal.SIGKILL)
            async with Engine.start(data, log=log, limits=LIMITS, again=engine):
                await graded(process, 2)
    assert len(grades(summary)) == 2
