"""The decision of one pass over a suite: which runs it needs, which it no longer keeps, and what its gate says.

Like `decide`, it remembers nothing: whoever calls it may die at any line, and the next call goes on.
"""

from __future__ import annotations

from datetime import datetime

from proctor.api.suite_status import EvalSuiteStatus, ScheduleStatus
from proctor.reconcile.suites_plan import SuiteAction, SuitePlan
from proctor.reconcile.suites_retention import next_expiry, plan_deletions
from proctor.reconcile.suites_seen import SuiteSeen, SuiteSnapshot
from proctor.reconcile.suites_starting import plan_starts
from proctor.reconcile.suites_status import build_refusal, build_suite_status


def decide_suite(suite: SuiteSnapshot, seen: SuiteSeen, now: datetime) -> SuitePlan:
    """Decide one pass.

    Args:
        suite: the suite with its last status.
        seen: its runs, and the images that it follows.
        now: the instant of the pass.

    Returns:
        The effects to bring about and the status to write; `SuitePlan.empty` when nothing is left to do until
        something new is seen, or it is time to wake.
    """
    if suite.spec is None:
        return _plan(suite, (), build_refusal(suite, seen, now), wake=None)
    starts = plan_starts(suite, suite.spec, seen, now)
    status = build_suite_status(suite, suite.spec, seen, starts, now=now)
    actions: tuple[SuiteAction, ...] = starts.runs
    if status == suite.status:
        # Nothing is deleted before what it showed stands in the status.
        gate_run = None if status.gate is None else status.gate.run_ref
        actions += tuple(plan_deletions(seen.runs, suite.spec.history, now, gate_run=gate_run))
    return _plan(suite, actions, status, wake=_find_wake(starts.schedule, seen, now))


def _plan(
    suite: SuiteSnapshot, actions: tuple[SuiteAction, ...], status: EvalSuiteStatus, *, wake: datetime | None
) -> SuitePlan:
    return SuitePlan(actions=actions, status=status, changed=status != suite.status, wake=wake)


def _find_wake(schedule: ScheduleStatus | None, seen: SuiteSeen, now: datetime) -> datetime | None:
    times = (None if schedule is None else schedule.next, next_expiry(seen.runs, now))
    return min((time for time in times if time is not None), default=None)
