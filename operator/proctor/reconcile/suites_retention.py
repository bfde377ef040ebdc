"""Which finished runs are cleared away: those past their own time, and those beyond the suite's history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import assert_never

from proctor.api.run import EvalRunSpec, EvalRunStatus, TtlStrategy, Verdict
from proctor.api.suite import History
from proctor.reconcile.suites_plan import DeleteRun
from proctor.reconcile.suites_seen import RunSeen

EXPIRED = "Expired"
BEYOND_HISTORY = "History"


def expires_at(spec: EvalRunSpec, status: EvalRunStatus) -> datetime | None:
    """Return when a run is to be deleted by its own `ttlStrategy`; None for never, or not before it has ended."""
    if spec.ttl_strategy is None or status.ended is None:
        return None
    seconds = _seconds_after(spec.ttl_strategy, status.verdict)
    return None if seconds is None else status.ended + timedelta(seconds=seconds)


def _seconds_after(ttl: TtlStrategy, verdict: Verdict) -> int | None:
    match verdict:
        case Verdict.PASS:
            return ttl.seconds_after_pass
        case Verdict.FAIL | Verdict.INCONCLUSIVE:
            return ttl.seconds_after_fail
        case Verdict.ERROR | Verdict.CANCELLED:
            return ttl.seconds_after_error
        case Verdict.PENDING:
            return None
        case _:
            assert_never(verdict)


def plan_deletions(
    runs: Sequence[RunSeen], history: History, now: datetime, *, gate_run: str | None
) -> list[DeleteRun]:
    """Return the runs to delete now.

    Args:
        runs: of one suite.
        history: how many finished runs it keeps; a run that a person made is never deleted by it.
        now: the instant of the pass.
        gate_run: the run that the gate refers to: its evidence stays as long as the gate does.
    """
    expired = {run.name for run in runs if is_expired(run, now)}
    beyond = {run.name for run in _beyond_history(runs, history)} - expired - {gate_run}
    gone = {run.name for run in runs if run.deleting}
    return [
        *(DeleteRun(name, EXPIRED) for name in sorted(expired - gone)),
        *(DeleteRun(name, BEYOND_HISTORY) for name in sorted(beyond - gone)),
    ]


def is_expired(run: RunSeen, now: datetime) -> bool:
    """Say whether a run is past its own time; one that a deployment tool would only make again never is."""
    if run.tracked:
        return False
    expiry = expires_at(run.spec, run.status)
    return expiry is not None and expiry <= now


def next_expiry(runs: Sequence[RunSeen], now: datetime) -> datetime | None:
    """Return when the next run expires; None if none will."""
    times = (expires_at(run.spec, run.status) for run in runs if not (run.deleting or run.tracked))
    return min((time for time in times if time is not None and time > now), default=None)


def _beyond_history(runs: Sequence[RunSeen], history: History) -> Iterator[RunSeen]:
    finished = [run for run in runs if run.owned and run.status.terminal]
    finished.sort(key=lambda run: (run.finished, run.name), reverse=True)
    passed = [run for run in finished if run.status.verdict is Verdict.PASS]
    failed = [run for run in finished if run.status.verdict is not Verdict.PASS]
    yield from passed[history.passed :]
    yield from failed[history.failed :]
