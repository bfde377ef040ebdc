"""Which attempts to start: controls first, then arms interleaved in seeded order, never more than fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from proctor.core.ids import AttemptKey, CellKey
from proctor.reconcile.observed import AttemptState
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
        parallelism: how many may be open at once, controls and retries included. As many again may wait for the store's
            word: no agent of theirs is at work, but a store that is away must hold the run up.
    """
    live = [cell.live.state for cell in progress.values() if cell.live is not None]
    at_work = sum(1 for state in live if state is not AttemptState.ENDING)
    free = min(parallelism - at_work, 2 * parallelism - len(live))
    waiting = (key for key in order if progress[key].state is CellState.PENDING)
    return [
        StartAttempt(AttemptKey(run_uid, key, progress[key].next_attempt))
        for key, _ in zip(waiting, range(max(0, free)), strict=False)
    ]
