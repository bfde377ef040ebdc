"""Which runs a suite has to make now: for a change, for a request, and by its schedule.

A run's name follows from what it is for, so whoever decides may die between any two effects and finds the same run
again; and what was dealt with stands in the status, so that a run that was deleted since is not made again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from proctor.api.fields import NameRef
from proctor.api.run import EvalRunSpec, ServerOverride
from proctor.api.suite import EvalSuiteSpec
from proctor.api.suite_status import ScheduleStatus
from proctor.core.cron import last_due, next_due
from proctor.core.digests import digest_json
from proctor.reconcile.suites_plan import CreateRun
from proctor.reconcile.suites_seen import RunCause, SuiteSeen, SuiteSnapshot

_MOST_NAME = 50
_HASH_DIGITS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Starts:
    """What a pass starts, and what that makes of the status.

    Attributes:
        runs: to be made.
        gate_run: name of the run that the gate follows; None where nothing gates, or an image is awaited.
        awaiting: servers whose image is not known.
        request: the newest request that is met.
        schedule: how far the schedule is dealt with.
    """

    runs: tuple[CreateRun, ...]
    gate_run: str | None
    awaiting: tuple[str, ...]
    request: str
    schedule: ScheduleStatus | None


def plan_starts(suite: SuiteSnapshot, spec: EvalSuiteSpec, seen: SuiteSeen, now: datetime) -> Starts:
    """Return the runs to make now."""
    followed = [server.name for server in spec.servers if server.image_from is not None]
    awaiting = tuple(name for name in followed if name not in seen.images)
    gate_run = None if awaiting or not spec.run_on_change else name_change_run(suite, seen)
    asked, request = (None, suite.status.run_request_id) if awaiting else _meet_request(suite, spec)
    due, schedule = _follow_schedule(suite, spec, seen, now, awaiting=bool(awaiting))
    # What the gate needs is made first: where a namespace has no room for another run, it is the one that counts.
    changed = None if gate_run is None or _is_settled(suite, gate_run) else gate_run
    trend = None if due is None else _name_run(suite, "schedule", due.isoformat())
    wanted = [
        None if changed is None else _build_run(suite, seen, changed, cause=RunCause.CHANGE),
        None if asked is None else _build_run(suite, seen, asked, cause=RunCause.REQUEST),
        None if trend is None else _build_run(suite, seen, trend, cause=RunCause.SCHEDULE, scheduled=due),
    ]
    existing = {run.name for run in seen.runs}
    return Starts(
        runs=tuple(run for run in wanted if run is not None and run.name not in existing),
        gate_run=gate_run,
        awaiting=awaiting,
        request=request,
        schedule=schedule,
    )


def name_change_run(suite: SuiteSnapshot, seen: SuiteSeen) -> str:
    """Return the name of the run of this generation and these images."""
    return _name_run(suite, "change", suite.generation, _followed_images(seen))


def _name_run(suite: SuiteSnapshot, *purpose: object) -> str:
    suffix = digest_json([suite.uid, *purpose])[:_HASH_DIGITS]
    return f"{suite.name[: _MOST_NAME - _HASH_DIGITS - 1].rstrip('-')}-{suffix}"


def _followed_images(seen: SuiteSeen) -> dict[str, str]:
    return dict(sorted(seen.images.items()))


def _is_settled(suite: SuiteSnapshot, gate_run: str) -> bool:
    """Say whether the gate has this run's verdict; the run may have been deleted since."""
    gate = suite.gate
    return gate is not None and gate.run_ref == gate_run and gate.verdict.terminal


def _meet_request(suite: SuiteSnapshot, spec: EvalSuiteSpec) -> tuple[str | None, str]:
    """Return the run that is asked for, if any, and the request that is met then."""
    met = suite.status.run_request_id
    if not spec.run_request_id or spec.run_request_id == met:
        return None, met
    # A new request is a new generation, and that makes a run by itself where changes do.
    asked = None if spec.run_on_change else _name_run(suite, "request", spec.run_request_id)
    return asked, spec.run_request_id


def _follow_schedule(
    suite: SuiteSnapshot, spec: EvalSuiteSpec, seen: SuiteSeen, now: datetime, *, awaiting: bool
) -> tuple[datetime | None, ScheduleStatus | None]:
    """Return the time that is due, if any, and how far the schedule is dealt with then.

    Of several times that were missed only the newest counts, and one that comes while a scheduled run still goes on
    is passed over.
    """
    cron = spec.schedule
    if cron is None:
        return None, None
    before = suite.status.schedule
    if before is None or before.cron != cron:
        # A schedule is not followed into the time before it was there.
        return None, ScheduleStatus(cron=cron, since=now, next=next_due(cron, now))
    due = last_due(cron, now)
    if due <= before.since or awaiting:
        return None, before
    after = ScheduleStatus(cron=cron, since=due, next=next_due(cron, now))
    is_going_on = any(run.cause is RunCause.SCHEDULE and run.owned and not run.status.terminal for run in seen.runs)
    return (None if is_going_on else due), after


def _build_run(
    suite: SuiteSnapshot, seen: SuiteSeen, name: str, *, cause: RunCause, scheduled: datetime | None = None
) -> CreateRun:
    servers = tuple(ServerOverride(name=server, image=image) for server, image in _followed_images(seen).items())
    spec = EvalRunSpec(suite_ref=NameRef(name=suite.name), servers=servers or None)
    return CreateRun(name=name, cause=cause, for_generation=suite.generation, spec=spec, scheduled=scheduled)
