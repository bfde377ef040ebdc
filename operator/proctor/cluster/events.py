"""Kubernetes Events of a run: one per transition, of a closed list of reasons."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from proctor.api.run import ConditionStatus, ConditionType, EvalRunStatus, Phase, Verdict
from proctor.clock import format_instant

_MAX_MESSAGE = 1000


class EventReason(StrEnum):
    """Everything that an Event of a run may say."""

    PREFLIGHT = "Preflight"
    SEEDING = "Seeding"
    ENFORCING = "Enforcing"
    CONTROLS = "ControlsStarted"
    RUNNING = "CellsStarted"
    SUSPENDED = "Suspended"
    GRADING = "Grading"
    NETWORK_NOT_ENFORCED = "NetworkNotEnforced"
    PASSED = "Passed"
    FAILED = "Failed"
    INCONCLUSIVE = "Inconclusive"
    ERROR = "Error"
    CANCELLED = "Cancelled"


_PHASES = {
    Phase.PREFLIGHT: EventReason.PREFLIGHT,
    Phase.SEEDING: EventReason.SEEDING,
    Phase.ENFORCING: EventReason.ENFORCING,
    Phase.CONTROLS: EventReason.CONTROLS,
    Phase.RUNNING: EventReason.RUNNING,
    Phase.SUSPENDED: EventReason.SUSPENDED,
    Phase.GRADING: EventReason.GRADING,
}
_VERDICTS = {
    Verdict.PASS: EventReason.PASSED,
    Verdict.FAIL: EventReason.FAILED,
    Verdict.INCONCLUSIVE: EventReason.INCONCLUSIVE,
    Verdict.ERROR: EventReason.ERROR,
    Verdict.CANCELLED: EventReason.CANCELLED,
}
_GOOD = frozenset(_PHASES.values()) | {EventReason.PASSED, EventReason.CANCELLED}


@dataclass(frozen=True, slots=True)
class Transition:
    """One change that people want to hear of."""

    reason: EventReason
    message: str


@dataclass(frozen=True, slots=True)
class RunRef:
    """Which run an Event is about."""

    namespace: str
    name: str
    uid: str


def find_transitions(before: EvalRunStatus, after: EvalRunStatus) -> Iterator[Transition]:
    """Give what changed between two statuses."""
    if _is_broken(after) and not _is_broken(before):
        yield Transition(EventReason.NETWORK_NOT_ENFORCED, after.summary or "sandboxes are not isolated")
    if after.verdict is not before.verdict and after.verdict in _VERDICTS:
        yield Transition(_VERDICTS[after.verdict], after.summary)
    elif after.phase is not before.phase and after.phase in _PHASES:
        cells = after.cells
        yield Transition(_PHASES[after.phase], f"{cells.graded} of {cells.total} cells graded")


def build_event(run: RunRef, transition: Transition, now: datetime) -> dict[str, Any]:
    """Return the Event; the same transition at the same instant has the same name."""
    at = format_instant(now)
    name = hashlib.sha256(f"{run.uid}\n{transition.reason}\n{at}".encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{run.name}.{name}", "namespace": run.namespace},
        "involvedObject": {
            "apiVersion": "proctor.dev/v1alpha1",
            "kind": "EvalRun",
            "namespace": run.namespace,
            "name": run.name,
            "uid": run.uid,
        },
        "reason": transition.reason.value,
        "message": transition.message[:_MAX_MESSAGE],
        "type": "Normal" if transition.reason in _GOOD else "Warning",
        "firstTimestamp": at[:19] + "Z",
        "lastTimestamp": at[:19] + "Z",
        "count": 1,
        "source": {"component": "proctor-operator"},
        "reportingComponent": "proctor.dev/operator",
        "reportingInstance": "proctor-operator",
    }


def _is_broken(status: EvalRunStatus) -> bool:
    kinds: Mapping[ConditionType, ConditionStatus] = {item.type: item.status for item in status.conditions}
    return kinds.get(ConditionType.NETWORK_ENFORCED) is ConditionStatus.FALSE
