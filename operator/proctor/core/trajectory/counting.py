"""Which attempt of a cell counts (grading rule 9): for its grade, its figures, its progress and whoever reads it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from proctor.core.trajectory.outcome import AttemptRecord, Outcome


def find_counting(records: Iterable[AttemptRecord]) -> AttemptRecord | None:
    """Return the attempt that counts of one cell: the last that infrastructure did not fail; None without one."""
    valid = (record for record in records if record.outcome is not Outcome.INFRA_ERROR)
    return max(valid, key=lambda record: record.key.attempt, default=None)


def select_counting(records: Iterable[AttemptRecord]) -> list[AttemptRecord]:
    """Return the attempt that counts of each cell that has one, by cell."""
    by_cell: dict[str, list[AttemptRecord]] = defaultdict(list)
    for record in records:
        by_cell[str(record.key.cell)].append(record)
    found = (find_counting(by_cell[cell]) for cell in sorted(by_cell))
    return [record for record in found if record is not None]
