"""Reading a run's trajectories back, beside a run that goes on or after all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.results import ResultsStore
from proctor.core.ids import AttemptKey, CellKey
from proctor.core.trajectory.events import Event
from proctor.core.trajectory.outcome import AttemptRecord, Outcome
from proctor.errors import InvalidInput
from proctor.local.engine import Engine, find_engine
from proctor.local.orders import RESULTS_DATABASE
from proctor.local.remote import parse_admin_url


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One attempt as the store has it.

    Attributes:
        bodies: what was kept of requests and results, by digest.
    """

    record: AttemptRecord
    events: tuple[Event, ...]
    bodies: dict[str, bytes]


async def read_trajectory(data_dir: Path, run: str, cell: CellKey, *, clickhouse_url: str | None = None) -> Trajectory:
    """Return the trajectory of a cell's valid attempt, or of its last one if none is valid.

    Args:
        data_dir: whose results engine is asked; started for the purpose if it doesn't run.
        run: the run's uid.
        cell: the cell.
        clickhouse_url: where results are instead.

    Raises:
        InvalidInput: no attempt of the cell has ended.
        Terminal: the store can't be read.
    """
    async with _open_store(data_dir, clickhouse_url) as store:
        records = [record for record in await store.attempts(run) if record.key.cell == cell]
        if not records:
            raise InvalidInput(f"cell {cell}: no attempt of it has ended yet")
        record = next((one for one in records if one.outcome is not Outcome.INFRA_ERROR), records[-1])
        events = await store.events(AttemptKey(run, cell, record.key.attempt))
        digests = {digest for event in events for digest in (event.request_digest, event.result_digest) if digest}
        return Trajectory(record, events, await store.blobs(digests))


async def read_tool_calls(
    data_dir: Path, run: str, *, clickhouse_url: str | None = None
) -> list[tuple[CellKey, tuple[Event, ...]]]:
    """Return the events of each cell's valid attempt.

    Args:
        data_dir: whose results engine is asked; started for the purpose if it doesn't run.
        run: the run's uid.
        clickhouse_url: where results are instead.

    Raises:
        Terminal: the store can't be read.
    """
    async with _open_store(data_dir, clickhouse_url) as store:
        records = [one for one in await store.attempts(run) if one.outcome is not Outcome.INFRA_ERROR]
        return [(record.key.cell, await store.events(record.key)) for record in records]


@asynccontextmanager
async def _open_store(data_dir: Path, clickhouse_url: str | None) -> AsyncIterator[ResultsStore]:
    if clickhouse_url is not None:
        async with _connect(parse_admin_url(clickhouse_url)) as store:
            yield store
        return
    path = data_dir / "engines" / "results"
    endpoint = await find_engine(path)
    if endpoint is not None:
        async with _connect(endpoint) as store:
            yield store
        return
    async with (
        Engine.start(path, log=data_dir / "engines" / "reading.log") as engine,
        _connect(engine.endpoint) as store,
    ):
        yield store


@asynccontextmanager
async def _connect(endpoint: Endpoint) -> AsyncIterator[ResultsStore]:
    store = ResultsStore(endpoint, RESULTS_DATABASE)
    try:
        yield store
    finally:
        await store.close()
