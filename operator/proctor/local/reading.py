"""Reading a run back, beside it while it goes on or after it: its files, its attempts, its trajectories, its bodies.

The store is read in bulk: some queries for a whole run, never one per cell.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.adapters.clickhouse.results import DEFAULT_DATABASE
from proctor.adapters.clickhouse.run_rows import RunRows
from proctor.bootstrap.stored_run import StoredRun
from proctor.core.ids import CellKey
from proctor.core.stats.tools import ToolFigures
from proctor.core.trajectory.counting import find_counting
from proctor.core.trajectory.events import Event
from proctor.core.trajectory.outcome import AttemptRecord
from proctor.errors import InvalidInput
from proctor.local.engine import Engine, find_engine

if TYPE_CHECKING:
    from proctor.adapters.clickhouse.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One attempt as the store has it.

    Attributes:
        bodies: what was kept of requests and results, by digest.
    """

    record: AttemptRecord
    events: tuple[Event, ...]
    bodies: dict[str, bytes]


@asynccontextmanager
async def open_stored_run(data_dir: Path, uid: str, *, clickhouse_url: str | None = None) -> AsyncIterator[StoredRun]:
    """Open what the store holds of a run.

    Args:
        data_dir: whose results engine is asked; started for the purpose if it doesn't run.
        uid: the run's.
        clickhouse_url: where results are instead.

    Raises:
        InvalidInput: this data dir has no results.
        Retryable: the store does not answer.
        Terminal: the store can't be read.
    """
    async with _find_store(data_dir, clickhouse_url) as endpoint:
        rows = RunRows(endpoint, DEFAULT_DATABASE)
        yield StoredRun(uid, await rows.attempts(uid), rows)


async def read_trajectory(data_dir: Path, run: str, cell: CellKey, *, clickhouse_url: str | None = None) -> Trajectory:
    """Return the trajectory of a cell's counting attempt, or of its last one if none counts.

    Args:
        data_dir: whose results engine is asked; started for the purpose if it doesn't run.
        run: the run's uid.
        cell: the cell.
        clickhouse_url: where results are instead.

    Raises:
        InvalidInput: no attempt of the cell has ended.
        Retryable: the store does not answer.
        Terminal: the store can't be read.
    """
    async with open_stored_run(data_dir, run, clickhouse_url=clickhouse_url) as stored:
        records = [record for record in stored.attempts if record.key.cell == cell]
        if not records:
            raise InvalidInput(f"cell {cell}: no attempt of it has ended yet")
        record = find_counting(records) or records[-1]
        ((_, events),) = [found async for found in stored.trajectories([record])]
        digests = {digest for event in events for digest in (event.request_digest, event.result_digest)}
        return Trajectory(record, events, {digest: body async for digest, body in stored.bodies(digests)})


async def read_tools(
    data_dir: Path, uids: Iterable[str], *, clickhouse_url: str | None = None
) -> tuple[tuple[ToolFigures, ...], ...]:
    """Return what tools showed, run by run; arguments and errors as for `open_stored_run`."""
    async with _find_store(data_dir, clickhouse_url) as endpoint:
        rows = RunRows(endpoint, DEFAULT_DATABASE)
        return tuple([await rows.tool_figures(uid) for uid in uids])


@asynccontextmanager
async def _find_store(data_dir: Path, clickhouse_url: str | None) -> AsyncIterator[Endpoint]:
    if clickhouse_url is not None:
        from proctor.local.remote import parse_admin_url

        yield parse_admin_url(clickhouse_url)
        return
    path = data_dir / "engines" / "results"
    endpoint = await find_engine(path)
    if endpoint is not None:
        yield endpoint
        return
    if not path.is_dir():
        raise InvalidInput(f"results {path}: there are none; if the run kept them elsewhere, give --clickhouse-url")
    async with Engine.start(path, log=data_dir / "engines" / "reading.log") as engine:
        yield engine.endpoint
