"""Datasets in a ClickHouse by URL: a database each, which exists once its row does."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from proctor.adapters.clickhouse import registry as module
from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.registry import DatasetRegistry, SeedOrder
from proctor.adapters.clickhouse.session import HttpSession
from proctor.adapters.clickhouse.shards import Shards
from proctor.core.seeding.identity import dataset_hash
from proctor.core.seeding.plan import SeedPlan
from proctor.errors import InvalidInput, Retryable, Terminal
from support.seeding import ANCHOR, EVERYTHING, make_plan, make_recipe, make_stream

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="module")]


def _order(rows: int) -> SeedOrder:
    recipe = make_recipe(streams={"requests": make_stream(rows=rows)})
    return SeedOrder(dataset_hash(recipe, 42, ANCHOR, Decimal(1)), "small", make_plan(recipe), None, 1)


async def _databases(session: HttpSession, digest: str) -> list[str]:
    rows = await session.fetch(f"SELECT name FROM system.databases WHERE name LIKE 'ds_{digest}%'")
    return [str(name) for (name,) in rows]


async def test_a_dataset_is_built_once_and_found(session: HttpSession) -> None:
    """M-A4: the second asking finds the first's row; verify and remove work on it."""
    registry, order = DatasetRegistry(Shards([session]), "default"), _order(50)
    record = await registry.ensure(order)
    assert await registry.ensure(order) == record
    assert await registry.find(order.hash) == record
    assert record in await registry.all()
    assert await registry.verify(record) == []
    await session.run(f"INSERT INTO `{record.database}`.otel_logs (Body) VALUES ('x')")
    assert len(await registry.verify(record)) == 3  # the table, and both its rollups through the views
    await registry.remove(order.hash)
    assert await _databases(session, order.hash) == []
    with pytest.raises(InvalidInput, match="there is none"):
        await registry.remove(order.hash)


async def test_the_first_commit_wins(session: HttpSession) -> None:
    """Architecture: two machines at once end with one dataset, the other's database dropped."""
    registries, order = [DatasetRegistry(Shards([session]), "default") for _ in range(2)], _order(60)
    first, second = await asyncio.gather(*(one.ensure(order) for one in registries))
    assert first == second
    assert await _databases(session, order.hash) == [first.database]


async def test_dead_attempts_are_swept_and_living_ones_are_not(
    session: HttpSession,
) -> None:
    """M-A4: what a killed seeding left in a ClickHouse goes with the next one."""
    registry = DatasetRegistry(Shards([session]), "default")
    await registry.prepare()
    dead, alive, foreign = "ds_00000000000000aa_dead", "ds_00000000000000aa_alive", "ds_00000000000000aa_other"
    for name in (dead, alive, foreign):
        await session.run(f"CREATE DATABASE {name}")
    await session.run(
        f"INSERT INTO dataset_attempts (database, beat) VALUES ('{dead}', now64(3) - 600), ('{alive}', now64(3))"
    )
    assert await registry.sweep() == 1
    # One that nobody ever claimed is not ours to drop.
    assert await _databases(session, "00000000000000aa") == [alive, foreign]


async def test_a_failed_build_leaves_no_database(session: HttpSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """M-A4: a refusal in the middle drops what was built."""
    order = _order(70)

    async def refuse(shards: Shards, _: SeedPlan, database: str, *__: object, **___: object) -> None:
        await shards.first.run(f"CREATE DATABASE `{database}`")
        raise Terminal("no")

    monkeypatch.setattr(module, "build_dataset", refuse)
    with pytest.raises(Terminal, match="no"):
        await DatasetRegistry(Shards([session]), "default").ensure(order)
    assert await _databases(session, order.hash) == []


def _seed_process(config: dict[str, object]) -> tuple[int, list[dict[str, object]]]:
    done = subprocess.run(
        [sys.executable, "-m", "proctor.jobs.seed"],
        input=json.dumps(config).encode(),
        capture_output=True,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def _config(endpoint: Endpoint, scenario: Path, **parts: object) -> dict[str, object]:
    place = {"host": endpoint.host, "port": endpoint.port, "user": endpoint.user, "password": endpoint.password}
    config = {"endpoint": place, "scenario": str(scenario), "volume": "0.01", "anchor": "2026-11-30T12:00:00Z"}
    return {**config, **parts}


async def test_the_seeding_process_reports_in_lines(endpoint: Endpoint, tmp_path: Path) -> None:
    """M-A1: one JSON configuration in, progress and the record out; a fault has its exit code and no password in it."""
    folder = tmp_path / "small"
    shutil.copytree(EVERYTHING, folder)
    code, lines = await asyncio.to_thread(_seed_process, _config(endpoint, folder))
    assert code == 0
    assert [line["stage"] for line in lines[:-1]][-1] == "verifying"
    assert list(lines[-1]) == ["record"]
    code, lines = await asyncio.to_thread(_seed_process, _config(endpoint, folder, volume="0"))
    assert (code, lines[-1]["retryable"]) == (1, False)
    code, lines = await asyncio.to_thread(_seed_process, _config(endpoint, folder, colour="red"))
    assert code == 1
    assert "colour" in str(lines[-1]["error"])
    assert endpoint.password not in str(lines)


async def test_a_clickhouse_that_is_away_is_worth_another_try() -> None:
    """Faults: nobody listens there: a clear error that says which, and that it may pass."""
    away = HttpSession(Endpoint("127.0.0.1", 1, "default", "s3cret"))
    with pytest.raises(Retryable, match=r"127\.0\.0\.1:1") as caught:
        await away.run("SELECT 1")
    assert "s3cret" not in str(caught.value)


async def test_a_refusal_says_what_was_refused(session: HttpSession) -> None:
    """Faults: an error of ClickHouse's names the statement and ClickHouse's reason."""
    with pytest.raises(Terminal, match="SELECT nothing"):
        await session.run("SELECT nothing")
