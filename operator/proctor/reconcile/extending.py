"""How many replicates a run has by now: blocks are added, in every arm and scenario, until its verdict is settled.

Nothing is remembered. A block was begun if the status says so or an attempt of one of its cells was ever started; and
one more is begun when all cells that there are by then are over and leave the verdict open. So a decider that dies
between any two effects finds the same number again.
"""

from __future__ import annotations

from bisect import bisect_left

from proctor.api.run import AdaptiveStatus, AdaptiveStop, Verdict
from proctor.reconcile.cells import expand_cells, looks_of
from proctor.reconcile.observed import GraderState, Observed
from proctor.reconcile.progress import CellProgress, count_replicates, read_progress
from proctor.reconcile.settling import is_open
from proctor.reconcile.snapshot import RunSnapshot


def read_grown_progress(run: RunSnapshot, observed: Observed, *, may_grow: bool) -> tuple[CellProgress, ...]:
    """Return the progress of every cell that the run has by now.

    Args:
        run: the run.
        observed: what was seen.
        may_grow: a block may be begun now.
    """
    looks = looks_of(run.suite)
    begun = bisect_left(looks, min(_count_begun(run, observed), looks[-1])) if len(looks) > 1 else 0
    grader = observed.grader
    # Once the grader was told that no more attempts come, none do.
    may_grow = may_grow and grader.state is GraderState.RUNNING and not grader.finishing
    for replicates in looks[begun:]:
        progress = _read(run, observed, replicates)
        if not may_grow or replicates == looks[-1] or not _is_over(progress) or not is_open(run, progress):
            break
    return progress


def awaits_growth(run: RunSnapshot, progress: tuple[CellProgress, ...]) -> bool:
    """Say whether a block may still follow: grades are awaited that decide it."""
    return not _is_over(progress) and count_replicates(progress) < looks_of(run.suite)[-1]


def build_adaptive(run: RunSnapshot, progress: tuple[CellProgress, ...], verdict: Verdict) -> AdaptiveStatus | None:
    """Return how far a run has grown, and why it grows no more; None for a run of a fixed size."""
    if run.suite.adaptive is None:
        return None
    looks, replicates = looks_of(run.suite), count_replicates(progress)
    return AdaptiveStatus(
        replicates=replicates,
        max_replicates=looks[-1],
        block=looks.index(replicates) + 1,
        blocks=len(looks),
        stopped=_find_stop(verdict, is_last=replicates == looks[-1]),
    )


def _find_stop(verdict: Verdict, *, is_last: bool) -> AdaptiveStop | None:
    match verdict:
        case Verdict.PENDING:
            return None
        case Verdict.PASS | Verdict.FAIL:
            return AdaptiveStop.SETTLED
        case Verdict.INCONCLUSIVE if is_last:
            return AdaptiveStop.MAX_REPLICATES
        case _:
            return AdaptiveStop.HALTED


def _count_begun(run: RunSnapshot, observed: Observed) -> int:
    written = run.status.adaptive
    started = (
        *(attempt.key for attempt in observed.attempts),
        *(record.key for record in observed.ended),
        *observed.withdrawn,
    )
    least = run.suite.replicates if written is None else written.replicates
    return max([least, *(key.cell.replicate for key in started)])


def _read(run: RunSnapshot, observed: Observed, replicates: int) -> tuple[CellProgress, ...]:
    cells = expand_cells(run.suite, replicates)
    return read_progress(cells, observed, infra_retries=run.suite.limits.infra_retries)


def _is_over(progress: tuple[CellProgress, ...]) -> bool:
    return all(cell.final for cell in progress)
