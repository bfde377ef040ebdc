"""What decisions about a suite rest on: the suite, its runs, and the images that it is told to follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from proctor.api.run import EvalRunSpec, EvalRunStatus
from proctor.api.suite import EvalSuiteSpec
from proctor.api.suite_status import EvalSuiteStatus, GateStatus

_TRACKERS = ("argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/")


class RunCause(StrEnum):
    """Why a suite made a run."""

    CHANGE = "Change"
    REQUEST = "Request"
    SCHEDULE = "Schedule"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteSnapshot:
    """One EvalSuite as a pass sees it.

    Attributes:
        name: of the suite.
        uid: part of the names of its runs, so that a suite of the same name never takes an older one's for its own.
        generation: of its spec.
        spec: what it says; None where that breaks a rule that the API server could not check.
        problem: which rule, and how to mend it; empty where there is a spec.
        status: as last written.
    """

    name: str
    uid: str
    generation: int
    spec: EvalSuiteSpec | None
    problem: str = ""
    status: EvalSuiteStatus

    @property
    def gate(self) -> GateStatus | None:
        """What is known of the gate of this generation; None where the last status is of another."""
        gate = self.status.gate
        return gate if gate is not None and gate.for_generation == self.generation else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSeen:
    """One EvalRun whose `suiteRef` names the suite.

    Attributes:
        name: of the run.
        created: when it was made.
        owned: the suite made it (a controller reference to the suite's uid); a person's is never cleared away by
            the suite's history.
        cause: from its label; None for a run that a person made.
        deleting: it is being deleted.
        tracked: a deployment tool applies it: deleted here, it would be made again for ever.
    """

    name: str
    created: datetime
    owned: bool
    cause: RunCause | None
    deleting: bool = False
    tracked: bool = False
    spec: EvalRunSpec
    status: EvalRunStatus

    @property
    def finished(self) -> datetime:
        """When a terminal run ended."""
        return self.status.ended or self.created


def is_tracked(metadata: Mapping[str, Any]) -> bool:
    """Say whether a deployment tool applies an object, by the marks that Argo CD and Flux leave on it."""
    marks = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    return any(name.startswith(_TRACKERS) for name in marks)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteSeen:
    """What was seen of a suite's surroundings.

    Attributes:
        runs: every run that refers to it, those that are being deleted included.
        images: by server with `imageFrom`, the image with its digest that the Deployment's container runs; a server is
            absent while there is no such Deployment, or while it rolls out and runs more than one.
    """

    runs: Sequence[RunSeen] = ()
    images: Mapping[str, str] = field(default_factory=dict)
