"""A run of this machine → its page: what run.json says, and what the results store has of every cell."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from proctor.core.ids import CellKey
from proctor.core.reports.page import CellTrajectory, RunFacts, render_page
from proctor.core.stats.tools import summarise_tools
from proctor.core.trajectory.counting import find_counting
from proctor.core.trajectory.events import Event, EventKind
from proctor.core.trajectory.outcome import AttemptRecord
from proctor.local.durable import write_atomic
from proctor.local.reading import StoredRun, open_stored_run
from proctor.local.rundir import RunDir
from proctor.reconcile.run_page import StoredParts, build_run_facts

PAGE_NAME = "report.html"
MOST_WITH_BODIES = 400
"""Cells of a run whose requests and results are all read."""
LOWEST = 200
"""Of a larger run, cells whose requests and results are read; of the others the record has the beginnings. The lowest
scores are what a reader looks for, and thousands of cells would take long to read and megabytes to send on."""

_SHOWN = frozenset({EventKind.TOOL_CALL, EventKind.DENIED, EventKind.MCP_MESSAGE})


async def write_page(
    directory: RunDir, data_dir: Path, *, clickhouse_url: str | None = None, output: Path | None = None
) -> Path:
    """Write a run's page, in one step, and return where.

    Args:
        directory: the run's folder.
        data_dir: whose results engine is asked; started for the purpose if it doesn't run.
        clickhouse_url: where results are instead.
        output: the file; beside run.json if left out.

    Raises:
        InvalidInput: this data dir has no results.
        Retryable: the store does not answer.
        Terminal: the run or the store can't be read, or the file can't be written.
    """
    path = output or directory.path / PAGE_NAME
    with _no_collecting():
        facts = await read_facts(directory, data_dir, clickhouse_url=clickhouse_url)
        write_atomic(path, render_page(facts).encode("utf-8", "replace"))
    return path


async def read_facts(directory: RunDir, data_dir: Path, *, clickhouse_url: str | None = None) -> RunFacts:
    """Return what a run's page shows; arguments and errors as for `write_page`."""
    run, cells = directory.read_whole()
    async with open_stored_run(data_dir, run.metadata.uid or "", clickhouse_url=clickhouse_url) as stored:
        parts = await _read_parts(stored, choose_cells(cells))
    return build_run_facts(run, directory.read_suite(), cells, parts, version=version("proctor"))


def choose_cells(cells: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Return the cells whose bodies are worth reading: those without a score, then the lowest."""
    count = len(cells) if len(cells) <= MOST_WITH_BODIES else LOWEST
    ranked = sorted(cells, key=lambda cell: -1.0 if cell.get("score") is None else float(cell["score"]))
    return frozenset(str(cell["cell"]) for cell in ranked[:count])


async def _read_parts(stored: StoredRun, whole: frozenset[str]) -> StoredParts:
    by_cell: dict[CellKey, list[AttemptRecord]] = defaultdict(list)
    for record in stored.attempts:
        by_cell[record.key.cell].append(record)
    counting = {cell: find_counting(records) for cell, records in by_cell.items()}
    # Where infrastructure failed them all, the last one says why.
    shown = {cell: counting[cell] or records[-1] for cell, records in by_cell.items()}
    trajectories = {}
    digests: set[str] = set()
    async for record, events in stored.trajectories(shown.values()):
        others = tuple(other for other in by_cell[record.key.cell] if other is not record)
        trajectories[record.key.cell] = CellTrajectory(record=record, events=events, others=others)
        digests |= _wanted(events) if str(record.key.cell) in whole else set()
        digests.add(record.answer_digest)
    bodies = {digest: body async for digest, body in stored.bodies(digests)}
    return StoredParts(
        trajectories=trajectories,
        bodies=bodies,
        tools=summarise_tools((cell, one.events) for cell, one in trajectories.items() if counting[cell] is not None),
        whole=len(whole) if len(whole) < len(trajectories) else None,
    )


@contextmanager
def _no_collecting() -> Iterator[None]:
    """Stop the search for garbage: a run's events live until the page is there, and searching them takes a fifth."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _wanted(events: tuple[Event, ...]) -> set[str]:
    """Return the bodies that a page shows: a model's request repeats the conversation, so it is left out."""
    digests = set()
    for event in events:
        if event.kind is EventKind.MODEL_CALL:
            digests.add(event.result_digest)
        elif event.kind in _SHOWN:
            digests |= {event.request_digest, event.result_digest}
    return digests
