"""What a run's page shows beside the run itself: its trajectories and their bodies, read from the results store."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class ShownAttempts:
    """The attempts that a run's page shows: of each cell the one that counts.

    Attributes:
        stored: the run in the store.
        by_cell: all of them.
        whole: cells whose bodies are shown.
    """

    stored: StoredRun
    by_cell: Mapping[CellKey, Sequence[AttemptRecord]]
    whole: frozenset[str]

    @classmethod
    def of(cls, stored: StoredRun, cells: Sequence[Mapping[str, Any]]) -> ShownAttempts:
        """Choose them.

        Args:
            stored: the run in the store.
            cells: the run's, as run.json has them.
        """
        by_cell: dict[CellKey, list[AttemptRecord]] = defaultdict(list)
        for record in stored.attempts:
            by_cell[record.key.cell].append(record)
        return cls(stored, by_cell, choose_cells(cells))

    @property
    def chosen(self) -> int | None:
        """Of how many cells bodies are shown; None if of all."""
        return len(self.whole) if len(self.whole) < len(self.by_cell) else None

    async def read(self, cells: Iterable[CellKey]) -> dict[CellKey, CellTrajectory]:
        """Return what is shown of cells; those that the store knows nothing of are missing.

        Raises:
            Retryable: the store went away.
            Terminal: it can't be read.
        """
        shown = [self._show(cell) for cell in cells if cell in self.by_cell]
        found = {record.key.cell: (record, events) async for record, events in self.stored.trajectories(shown)}
        wanted = {cell: self._wanted(record, events) for cell, (record, events) in found.items()}
        digests = {digest for each in wanted.values() for digest in each}
        bodies = {digest: body async for digest, body in self.stored.bodies(digests)}
        return {
            cell: CellTrajectory(
                record=record,
                events=events,
                others=tuple(other for other in self.by_cell[cell] if other is not record),
                bodies={digest: bodies[digest] for digest in wanted[cell] if digest in bodies},
            )
            for cell, (record, events) in found.items()
        }

    def _show(self, cell: CellKey) -> AttemptRecord:
        records = self.by_cell[cell]
        # Where infrastructure failed them all, the last one says why.
        return find_counting(records) or records[-1]

    def _wanted(self, record: AttemptRecord, events: Sequence[Event]) -> set[str]:
        """Return the bodies that a page shows: a model's request repeats the conversation, so it is left out."""
        digests = {record.answer_digest}
        if str(record.key.cell) in self.whole:
            for event in events:
                if event.kind is EventKind.MODEL_CALL:
                    digests.add(event.result_digest)
                elif event.kind in _SHOWN:
                    digests |= {event.request_digest, event.result_digest}
        return digests


async def read_parts(attempts: ShownAttempts) -> StoredParts:
    """Return what the store has of a run's cells, all in memory; errors as for `ShownAttempts.read`."""
    trajectories = await attempts.read(attempts.by_cell)
    return StoredParts(
        trajectories=trajectories,
        tools=summarise_tools(
            (cell, one.events) for cell, one in trajectories.items() if find_counting([one.record]) is not None
        ),
        whole=attempts.chosen,
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
