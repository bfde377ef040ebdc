"""Statuses of runs and suites, as metrics are read off them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from proctor.api.run import (
    ArmStatus,
    CellCounts,
    ComparisonStatus,
    Condition,
    ConditionStatus,
    ConditionType,
    ControlsStatus,
    Estimate,
    EvalRunStatus,
    JudgeStatus,
    Outcomes,
    Phase,
    RunDigests,
    ToolErrors,
    Verdict,
)
from proctor.api.suite_status import EvalSuiteStatus, GateStatus, ScheduleStatus

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
DIGEST = 64 * "a"


def at(minutes: float) -> datetime:
    """Return the instant so many minutes after the first run's start."""
    return START + timedelta(minutes=minutes)


def make_arm(server: str, model: str = "newest", *, mean: str | None = "0.83", usd: str | None = "0.25") -> ArmStatus:
    """Return an arm; without a mean none of its cells was graded."""
    score = None if mean is None else Estimate(mean=Decimal(mean), low=Decimal("0.7"), high=Decimal("0.9"))
    return ArmStatus(
        server=server,
        model=model,
        score=score,
        graded=0 if mean is None else 3,
        tool_calls="5.00",
        tool_errors=ToolErrors(agent=2, server=1),
        tokens=1200,
        usd=None if usd is None else Decimal(usd),
        seconds="6.60",
        consistency=Decimal("1.0"),
    )


def make_finished(
    verdict: Verdict = Verdict.PASS,
    *,
    ended: datetime | None = None,
    arms: tuple[ArmStatus, ...] | None = None,
    infra_errored: int = 0,
    judge: JudgeStatus | None = None,
) -> EvalRunStatus:
    """Return the status of a run of two servers that took ten minutes: two for data, one for isolation."""
    ended = at(10) if ended is None else ended
    started = ended - timedelta(minutes=10)
    reached = ((ConditionType.SEEDED, 2), (ConditionType.NETWORK_ENFORCED, 3), (ConditionType.COMPLETE, 10))
    return EvalRunStatus(
        observed_generation=1,
        verdict=verdict,
        phase=Phase.COMPLETE,
        started=started,
        ended=ended,
        digests=RunDigests(suite=DIGEST, gate=DIGEST),
        cells=CellCounts(total=8, graded=7 - infra_errored, ungraded=1, infra_errored=infra_errored),
        outcomes=Outcomes(completed=6, gave_up=1),
        controls=ControlsStatus(oracle=Decimal("1.0"), noop=Decimal("0.0")),
        arms=(make_arm("old"), make_arm("new")) if arms is None else arms,
        comparisons=(
            ComparisonStatus(
                model="newest",
                baseline="old",
                candidate="new",
                pairs=3,
                delta=Decimal("-0.02"),
                low=Decimal("-0.05"),
                high=Decimal("0.01"),
            ),
        ),
        judge=judge,
        conditions=tuple(
            Condition(
                type=kind,
                status=ConditionStatus.TRUE,
                reason="Done",
                observed_generation=1,
                last_transition_time=started + timedelta(minutes=minutes),
            )
            for kind, minutes in reached
        ),
    )


def make_going_on(*, pending: int = 5, running: int = 2, graded: int = 1) -> EvalRunStatus:
    """Return the status of a run without a verdict."""
    cells = CellCounts(total=pending + running + graded, pending=pending, running=running, graded=graded)
    return EvalRunStatus(observed_generation=1, phase=Phase.RUNNING, started=at(20), cells=cells)


def make_suite_status(*, gate: Verdict | None = None, scheduled: bool = False) -> EvalSuiteStatus:
    """Return the status of a suite; a scheduled one runs every hour."""
    return EvalSuiteStatus(
        observed_generation=1,
        gate=None if gate is None else GateStatus(verdict=gate, run_ref="r", for_generation=1),
        schedule=ScheduleStatus(cron="0 * * * *", since=at(0), next=at(60)) if scheduled else None,
    )
