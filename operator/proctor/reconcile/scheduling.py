"""Which attempts to start: controls first, then arms interleaved in seeded order, never more than fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from proctor.core.ids import AttemptKey, CellKey
from proctor.reconcile.plan import StartAttempt
from proctor.reconcile.progress import CellProgress, CellState


def plan_starts(
    order: Sequence[CellKey], progress: Mapping[CellKey, CellProgress], *, run_uid: str, parallelism: int
) -> list[StartAttempt]:
    """Return the attempts to start now.

    Args:
        order: the cells that may run in this phase, in the order in which they shall.
        progress: every cell's progress.
        run_uid: the run that they belong to.
        parallelism: how many may be open at once, controls and retries included.
    """
    free = parallelism - sum(1 for cell in progress.values() if cell.live is not None)
    waiting = (key for key in order if progress[key].state is CellState.PENDING)
    return [
        StartAttempt(AttemptKey(run_uid, key, progress[key].next_attempt))
        for key, _ in zip(waiting, range(max(0, free)), strict=False)
    ]
