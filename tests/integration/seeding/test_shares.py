"""One dataset by several workers, and over several servers: the rows of one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path

import pytest
import pytest_asyncio

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.registry import DatasetRegistry, SeedOrder
from proctor.adapters.clickhouse.session import HttpSession
from proctor.adapters.clickhouse.shards import Shards
from proctor.core.scenarios.answer import Fact, FactType
from proctor.core.seeding.facts import FactSheet
from proctor.core.seeding.identity import dataset_hash
from proctor.core.seeding.record import DatasetRecord
from proctor.core.seeding.share import Share
from proctor.errors import ProctorError, Retryable, Terminal
from proctor.jobs.mounted_seed import SeedTask, seed_mounted
from support.mounted import make_suite, write_mount
from support.seeding import ANCHOR, load_everything, make_plan, make_recipe, make_stream
from support.shards import run_pair

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="module")]

_FACTS = {
    "spans": Fact(type=FactType.INTEGER, sql="SELECT count() FROM otel_traces"),
    # A subquery is of all rows, wherever they lie.
    "traced": Fact(
        type=FactType.INTEGER, sql="SELECT count() FROM otel_logs WHERE TraceId IN (SELECT TraceId FROM otel_traces)"
    ),
}


def _order() -> SeedOrder:
    recipe, volume = load_everything(), "0.05"
    plan, sheet = make_plan(recipe, volume=volume), FactSheet("f" * 64, "e" * 64, _FACTS)
    return SeedOrder(dataset_hash(recipe, 42, ANCHOR, Decimal(volume)), "everything", plan, sheet, 1)


def _small(rows: int) -> SeedOrder:
    recipe = make_recipe(streams={"requests": make_stream(rows=rows)})
    return SeedOrder(dataset_hash(recipe, 42, ANCHOR, Decimal(1)), "small", make_plan(recipe), None, 1)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def whole(endpoint: Endpoint) -> DatasetRecord:
    """Build the dataset by one worker, on one server, in a registry of its own."""
    session = HttpSession(endpoint)
    await session.run("CREATE DATABASE whole")
    return await DatasetRegistry(Shards([session]), "whole").ensure(_order())


async def _names(session: HttpSession, digest: str) -> list[str]:
    rows = await session.fetch(f"SELECT name FROM system.databases WHERE name LIKE 'ds_{digest}%'")
    return [str(name) for (name,) in rows]


async def test_workers_that_share_a_dataset_make_the_rows_of_one(session: HttpSession, whole: DatasetRecord) -> None:
    """Issue, Scale: N workers over row ranges, identical digest; what was loaded apart is gone after."""
    registry, order, before = DatasetRegistry(Shards([session]), "default"), _order(), set(await _names(session, "%"))
    first, *others = await asyncio.gather(*(registry.ensure_part(order, Share(part, 3)) for part in range(3)))
    assert first is not None
    assert others == [None, None]
    assert (first.digest, first.facts) == (whole.digest, whole.facts)
    assert set(await _names(session, "%")) - before == {first.database}
    # Who comes late finds it made.
    assert await registry.ensure_part(order, Share(2, 3)) == first
    await registry.remove(order.hash)


async def test_a_worker_that_is_tried_again_does_not_double_its_rows(session: HttpSession) -> None:
    """Architecture: each try loads into tables of its own, and one of them counts; what is loaded is found."""
    registry, order = DatasetRegistry(Shards([session]), "default"), _small(7)
    both = await asyncio.gather(*(registry.ensure_part(order, Share(1, 2)) for _ in range(2)))
    assert both == [None, None]
    (kept,) = await _names(session, order.hash)
    assert await registry.ensure_part(order, Share(1, 2)) is None
    assert await _names(session, order.hash) == [kept]
    made = await registry.ensure_part(order, Share(0, 2))
    assert made is not None
    assert await registry.verify(made) == []
    await registry.remove(order.hash)
    assert await _names(session, order.hash) == []


async def test_a_pod_of_an_indexed_job_says_which_part_it_loaded(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue, Children: a seeding Job, Indexed over row ranges: the pod of the second part names no dataset."""
    mount, log = write_mount(tmp_path / "mount", suite=make_suite()), tmp_path / "log"
    (mount / "clickhouse" / "user").write_text(endpoint.user, "utf-8")
    (mount / "clickhouse" / "password").write_text(endpoint.password, "utf-8")
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "1")
    place = ("--clickhouse-kind", "Server", "--host", endpoint.host, "--port", str(endpoint.port))
    words = ("--mounted", str(mount), "--scenario", "error-root-cause", *place, "--user-name", "pr_x_0")
    task = SeedTask.parse([*words, "--parts", "2", "--termination-log", str(log)])
    assert await asyncio.to_thread(seed_mounted, task, lambda _: None) == 0, log.read_text("utf-8")
    assert json.loads(log.read_bytes()) == {"loaded": "2/2"}


class _DyingSession:
    """Goes away at the first statement that has these words."""

    def __init__(self, session: HttpSession, words: str, error: ProctorError) -> None:
        self.fetch = session.fetch
        self._session, self._words, self._error = session, words, error

    async def run(self, sql: str, settings: dict[str, int | str] | None = None) -> None:
        if self._words in sql:
            raise self._error
        await self._session.run(sql, settings)


async def _fail_to_put_together(session: HttpSession, order: SeedOrder, error: ProctorError) -> None:
    registry = DatasetRegistry(Shards([_DyingSession(session, "ATTACH PARTITION", error)]), "default")
    await registry.ensure_part(order, Share(1, 2))
    with pytest.raises(type(error), match=str(error)):
        await registry.ensure_part(order, Share(0, 2))


async def test_parts_outlive_a_clickhouse_that_went_away(session: HttpSession) -> None:
    """Faults: ClickHouse away while parts are put together: they are still there for the next try."""
    order = _small(8)
    await _fail_to_put_together(session, order, Retryable("gone"))
    assert len(await _names(session, order.hash)) == 2
    again = DatasetRegistry(Shards([session]), "default")
    assert await again.ensure_part(order, Share(0, 2)) is not None
    await again.remove(order.hash)


async def test_parts_that_do_not_fit_are_not_kept(session: HttpSession) -> None:
    """Faults: parts that no dataset can be made of are dropped, so that the next try begins anew."""
    order = _small(9)
    await _fail_to_put_together(session, order, Terminal("other columns"))
    assert await _names(session, order.hash) == []


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shards(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shards]:
    async with run_pair(tmp_path_factory.mktemp("shards")) as pair:
        yield pair


@pytest.mark.drill
async def test_two_shards_have_the_rows_of_one_server(shards: Shards, whole: DatasetRecord) -> None:
    """Issue, Scale: two engines as two shards, read through Distributed tables: digest and facts of one."""
    registry, order = DatasetRegistry(shards, "default"), _order()
    record = await registry.ensure(order)
    assert (record.digest, record.facts) == (whole.digest, whole.facts)
    assert await registry.verify(record) == []
    counts = [await one.fetch(f"SELECT count() FROM `{record.database}_local`.otel_traces") for one in shards.sessions]
    assert all(int(str(rows[0][0])) > 0 for rows in counts)
    await registry.remove(order.hash)
    for one in shards.sessions:
        assert await one.fetch("SELECT name FROM system.databases WHERE name LIKE 'ds_%'") == []


@pytest.mark.drill
async def test_workers_share_what_lies_on_two_shards(shards: Shards, whole: DatasetRecord) -> None:
    """Issue, Scale: each of three workers loads into the server that keeps its part."""
    registry, order = DatasetRegistry(shards, "default"), _order()
    first, *_ = await asyncio.gather(*(registry.ensure_part(order, Share(part, 3)) for part in range(3)))
    assert first is not None
    assert first.digest == whole.digest
    await registry.remove(order.hash)
