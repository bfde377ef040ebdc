"""What a run's page shows beside the run itself: its trajectories and their bodies, read from the results store."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from proctor.bootstrap.stored_run import StoredRun
from proctor.core.ids import CellKey
from proctor.core.reports.page import CellTrajectory
from proctor.core.stats.tools import summarise_tools
from proctor.core.trajectory.counting import find_counting
from proctor.core.trajectory.events import Event, EventKind
from proctor.core.trajectory.outcome import AttemptRecord
from proctor.reconcile.run_page import StoredParts

MOST_WITH_BODIES = 400
"""Cells of a run whose requests and results are all read."""
LOWEST = 200
"""Of a larger run, cells whose requests and results are read; of the others the record has the beginnings. The lowest
scores are what a reader looks for, and thousands of cells would take long to read and megabytes to send on."""

_SHOWN = frozenset({EventKind.TOOL_CALL, EventKind.DENIED, EventKind.MCP_MESSAGE})


def choose_cells(cells: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Return the cells whose bodies are worth reading: those without a score, then the lowest."""
    count = len(cells) if len(cells) <= MOST_WITH_BODIES else LOWEST
    ranked = sorted(cells, key=lambda cell: -1.0 if cell.get("score") is None else float(cell["score"]))
    return frozenset(str(cell["cell"]) for cell in ranked[:count])


async def read_parts(stored: StoredRun, whole: frozenset[str]) -> StoredParts:
    """Return what the store has of a run's cells.

    Args:
        stored: the run in the store.
        whole: cells whose bodies are read too.

    Raises:
        Retryable: the store went away.
        Terminal: it can't be read.
    """
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
def no_collecting() -> Iterator[None]:
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
