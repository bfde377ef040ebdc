"""Reading a whole run back: everything, in order, in few queries, whatever its size."""

from __future__ import annotations

import pickle
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from proctor.adapters.clickhouse import run_rows
from proctor.adapters.clickhouse.results_rows import parse_body
from proctor.core.digests import digest_bytes
from proctor.core.ids import CellKey
from proctor.core.stats.tools import summarise_tools
from proctor.core.trajectory.events import Status
from proctor.core.trajectory.outcome import Outcome
from proctor.core.trajectory.trajectory_digest import digest_trajectory
from proctor.errors import InvalidInput, Terminal
from proctor.local.reading import open_stored_run, read_tools, read_trajectory
from support.finished_runs import FinishedRun, Played, make_finished_run, serve_runs, suite_of

pytestmark = pytest.mark.engine
HOSTILE = "\x1b[2J\u202e\ud800'; DROP TABLE events; --\\n\t\"ü\U0001f600"


def play(cell: CellKey, chance: random.Random) -> Played:
    lost = cell.replicate == 12
    tools = tuple((chance.choice(["run_query", HOSTILE]), chance.choice(list(Status))) for _ in range(3))
    return Played(
        latency_ms=chance.randint(1, 5000),
        outcome=Outcome.INFRA_ERROR if lost else Outcome.COMPLETED,
        tools=tools * chance.randint(1, 3),
        texts=HOSTILE,
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stored(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Path, FinishedRun, FinishedRun]]:
    root = tmp_path_factory.mktemp("reading")
    first = make_finished_run(root, name="first-261130-120000-0001", suite=suite_of(48), play=play)
    second = make_finished_run(root, name="second-261130-130000-0002", suite=suite_of(12), play=play)
    async with serve_runs(root, first, second) as store:
        await store.write(next(first.batches()))  # a batch whose acknowledgement was lost is written twice
        yield root, first, second


@pytest.mark.asyncio(loop_scope="module")
async def test_everything_comes_back_as_it_was(stored: tuple[Path, FinishedRun, FinishedRun]) -> None:
    """M-A8, P30: each attempt with all of its events, in order, and exactly as they were recorded."""
    root, first, _ = stored
    async with open_stored_run(root, first.uid) as run:
        assert set(run.attempts) == set(first.records)
        found = {record.key: events async for record, events in run.trajectories(run.attempts)}
        assert {key: digest_trajectory(events) for key, events in found.items()} == {
            record.key: record.trajectory_digest for record in first.records
        }
        digests = [event.result_digest for events in found.values() for event in events]
        bodies = {digest: body async for digest, body in run.bodies([*digests, "", "no digest", "0" * 64])}
    assert bodies.keys() == {digest for digest in digests if digest}
    assert all(digest_bytes(body) == digest for digest, body in bodies.items())


@pytest.mark.asyncio(loop_scope="module")
async def test_only_counting_attempts_unless_asked(stored: tuple[Path, FinishedRun, FinishedRun]) -> None:
    """Grading rule 9: what infrastructure failed is read only by who asks for it."""
    root, first, _ = stored
    async with open_stored_run(root, first.uid) as run:
        found = [record async for record, _ in run.trajectories()]
    assert found == sorted(found, key=lambda record: record.key)
    assert {record.key for record in found} == {
        record.key for record in first.records if record.outcome is not Outcome.INFRA_ERROR
    }


@pytest.mark.asyncio(loop_scope="module")
async def test_queries_do_not_grow_with_cells(
    stored: tuple[Path, FinishedRun, FinishedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is read in pages of many cells, and small pages give the same rows as one large page."""
    root, first, _ = stored
    async with open_stored_run(root, first.uid) as run:
        whole = [found async for found in run.trajectories(run.attempts)]
        monkeypatch.setattr(run_rows, "_EVENTS_PER_PAGE", 50)
        monkeypatch.setattr(run_rows, "_BODY_BYTES_PER_PAGE", 500)
        asked: list[str] = []
        session = run.rows._session
        fetch = session.fetch

        async def count(sql: str, settings: object = None) -> list[tuple[object, ...]]:
            asked.append(sql)
            return await fetch(sql, settings)  # type: ignore[arg-type]

        monkeypatch.setattr(session, "fetch", count)
        assert [found async for found in run.trajectories(run.attempts)] == whole
        assert 2 < len(asked) < len(whole)
        digests = {event.result_digest for _, events in whole for event in events if event.result_digest}
        assert {digest async for digest, _ in run.bodies(digests)} == digests


@pytest.mark.asyncio(loop_scope="module")
async def test_two_runs_do_not_mix(stored: tuple[Path, FinishedRun, FinishedRun]) -> None:
    """Runs share tables; what is read of one is its own."""
    root, first, second = stored
    for made in (first, second):
        async with open_stored_run(root, made.uid) as run:
            assert {record.key for record in run.attempts} == {record.key for record in made.records}


@pytest.mark.asyncio(loop_scope="module")
async def test_tools_counted_in_the_store_are_those_counted_here(
    stored: tuple[Path, FinishedRun, FinishedRun],
) -> None:
    """M-B7: one set of figures, whoever counts them; a retried attempt is counted once."""
    root, *runs = stored
    found = await read_tools(root, [run.uid for run in runs])
    for made, figures in zip(runs, found, strict=True):
        async with open_stored_run(root, made.uid) as run:
            read = [(record.key.cell, events) async for record, events in run.trajectories()]
        assert figures == summarise_tools(read)
        assert len(figures) > 4
    assert any(one.given_up_in for one in found[0])


@pytest.mark.asyncio(loop_scope="module")
async def test_one_cell(stored: tuple[Path, FinishedRun, FinishedRun]) -> None:
    """M-A8: a cell's trajectory with its bodies."""
    root, first, _ = stored
    cell = CellKey("scenario-1", "left", "newest", 2)
    found = await read_trajectory(root, first.uid, cell)
    assert digest_trajectory(found.events) == found.record.trajectory_digest
    assert found.record.answer_digest in found.bodies
    with pytest.raises(InvalidInput, match="no attempt of it has ended"):
        await read_trajectory(root, first.uid, CellKey("scenario-1", "left", "newest", 199))


def test_changed_body_is_found_out() -> None:
    """P30: a body that is not what its digest says is no evidence."""
    with pytest.raises(Terminal, match="was changed"):
        parse_body(("0" * 64, "eA=="), "results")


async def test_no_results_no_engine(tmp_path: Path) -> None:
    """Reading starts no engine where there is nothing to read, and says where else results may be."""
    with pytest.raises(InvalidInput, match="--clickhouse-url"):
        await read_tools(tmp_path, ["run-1"])
    assert not (tmp_path / "engines").exists()


def test_maker_is_a_real_run(tmp_path: Path) -> None:
    """The maker's run.json is one that Proctor reads back, with the verdict that `decide` gives."""
    made = make_finished_run(tmp_path, suite=suite_of(12))
    assert made.directory.read_run() == made.run
    assert made.directory.read_suite() == made.suite
    assert made.run.status.cells.graded == made.run.status.cells.total == 16
    assert pickle.loads(pickle.dumps(made.records)) == made.records  # noqa: S301 - our own
