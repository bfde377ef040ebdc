"""What a pass over a suite decided."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from proctor.api.run import EvalRunSpec
from proctor.api.suite_status import EvalSuiteStatus
from proctor.reconcile.suites_seen import RunCause, SuiteSnapshot

SUITE_LABEL = "proctor.dev/suite"
CAUSE_LABEL = "proctor.dev/cause"
GENERATION_ANNOTATION = "proctor.dev/for-generation"
SCHEDULED_ANNOTATION = "proctor.dev/scheduled-at"


@dataclass(frozen=True, slots=True)
class CreateRun:
    """Make a run; one of that name that exists already is success.

    Attributes:
        name: follows from what the run is for, so that no run is ever made twice.
        for_generation: of the suite; a run must not freeze an older one.
        scheduled: the time that it was scheduled for; None for other causes.
    """

    name: str
    cause: RunCause
    for_generation: int
    spec: EvalRunSpec
    scheduled: datetime | None = None


@dataclass(frozen=True, slots=True)
class DeleteRun:
    """Delete a finished run; one that is gone already is success.

    Attributes:
        why: machine word: History or Expired.
    """

    name: str
    why: str


SuiteAction = CreateRun | DeleteRun


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitePlan:
    """One pass's decision.

    Attributes:
        actions: in the order in which they may be applied; each is idempotent.
        status: what to write afterwards, in one patch.
        changed: the status differs from what the suite has.
        wake: when to look again if nothing new is seen; None for never.
    """

    actions: tuple[SuiteAction, ...]
    status: EvalSuiteStatus
    changed: bool
    wake: datetime | None

    @property
    def empty(self) -> bool:
        """Nothing is left to do until something new is seen, or it is time to wake."""
        return not self.actions and not self.changed


def render_run(suite: SuiteSnapshot, namespace: str, action: CreateRun) -> dict[str, Any]:
    """Return the EvalRun to create, owned by its suite."""
    annotations = {GENERATION_ANNOTATION: str(action.for_generation)}
    if action.scheduled is not None:
        annotations[SCHEDULED_ANNOTATION] = action.scheduled.isoformat().replace("+00:00", "Z")
    return {
        "apiVersion": "proctor.dev/v1alpha1",
        "kind": "EvalRun",
        "metadata": {
            "name": action.name,
            "namespace": namespace,
            "labels": {SUITE_LABEL: suite.name, CAUSE_LABEL: action.cause.value},
            "annotations": annotations,
            "ownerReferences": [
                {
                    "apiVersion": "proctor.dev/v1alpha1",
                    "kind": "EvalSuite",
                    "name": suite.name,
                    "uid": suite.uid,
                    "controller": True,
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": action.spec.to_file(),
    }
