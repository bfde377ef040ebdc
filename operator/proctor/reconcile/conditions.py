"""Conditions of a run: the status contract that gates rely on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from proctor.api.gate import Enforcement
from proctor.api.run import Condition, ConditionStatus, ConditionType, Verdict
from proctor.reconcile.observed import Isolation

MAX_MESSAGE = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the conditions are derived from.

    Attributes:
        reason: machine word of the verdict, or of what is awaited.
        seeded: every dataset is committed.
        cells_may_start: preparation is over and nothing holds cells back.
        graded: every ended cell has a grade or is ungraded.
    """

    verdict: Verdict
    enforcement: Enforcement
    reason: str
    summary: str
    suspended: bool
    seeded: bool
    isolation: Isolation
    cells_may_start: bool
    graded: bool

    @property
    def terminal(self) -> bool:
        """Whether the verdict is final."""
        return self.verdict is not Verdict.PENDING

    @property
    def let_through(self) -> bool:
        """Whether what waits for the run may go on."""
        return is_let_through(self.verdict, self.enforcement)


def is_let_through(verdict: Verdict, enforcement: Enforcement) -> bool:
    """Say whether what waits for a verdict may go on; neither Pending nor an Error ever lets anything through."""
    if verdict is Verdict.PASS:
        return True
    stopping = {Verdict.PENDING, Verdict.ERROR}
    return enforcement is Enforcement.AUDIT and verdict not in stopping


Description = tuple[ConditionStatus, str, str]
"""Status, machine word, and what is said to people."""


def build_conditions(
    standing: Standing, before: Sequence[Condition], *, generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Return all conditions of a run."""
    return renew_conditions(_describe(standing), before, generation=generation, now=now)


def renew_conditions(
    described: Mapping[ConditionType, Description], before: Sequence[Condition], *, generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Return conditions as described; the time of a condition moves only when its status does."""
    known = {condition.type: condition for condition in before}
    built = []
    for kind, (status, reason, message) in described.items():
        old = known.get(kind)
        moved = old is None or old.status is not status
        built.append(
            Condition(
                type=kind,
                status=status,
                reason=reason,
                message=message[:MAX_MESSAGE],
                observed_generation=generation,
                last_transition_time=now if old is None or moved else old.last_transition_time,
            )
        )
    return tuple(built)


def _describe(standing: Standing) -> dict[ConditionType, Description]:
    terminal = standing.terminal
    why = standing.reason or ("Suspended" if standing.suspended else "Progressing")
    text = standing.summary
    return {
        ConditionType.READY: (say_holds(terminal and standing.let_through), why, text),
        ConditionType.RECONCILING: (say_holds(not terminal and not standing.suspended), why, text),
        ConditionType.STALLED: (say_holds(terminal and not standing.let_through), why, text),
        ConditionType.SEEDED: (say_holds(standing.seeded), "Committed" if standing.seeded else "Awaited", ""),
        ConditionType.NETWORK_ENFORCED: _describe_isolation(standing.isolation),
        ConditionType.RUNNING: (say_holds(standing.cells_may_start and not terminal), why, ""),
        ConditionType.GRADED: (say_holds(standing.graded), "AllGraded" if standing.graded else "Awaited", ""),
        ConditionType.COMPLETE: (say_holds(terminal), why, text),
        ConditionType.PASSED: (_describe_passed(standing.verdict), why, text),
    }


def say_holds(holds: bool) -> ConditionStatus:  # noqa: FBT001 - the answer itself
    """Return what a condition says of something that is known."""
    return ConditionStatus.TRUE if holds else ConditionStatus.FALSE


def _describe_passed(verdict: Verdict) -> ConditionStatus:
    if verdict is Verdict.PASS:
        return ConditionStatus.TRUE
    return ConditionStatus.FALSE if verdict is Verdict.FAIL else ConditionStatus.UNKNOWN


def _describe_isolation(isolation: Isolation) -> Description:
    match isolation:
        case Isolation.ENFORCED:
            return ConditionStatus.TRUE, "Proven", ""
        case Isolation.BROKEN:
            return ConditionStatus.FALSE, "NetworkNotEnforced", ""
        case Isolation.WAIVED:
            return ConditionStatus.FALSE, "Waived", "cells were not isolated: a person chose to run without a sandbox"
        case Isolation.UNPROVEN:
            return ConditionStatus.UNKNOWN, "Awaited", ""
