"""What a pass decided: effects to bring about, and the status to write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from proctor.api.run import EvalRunStatus
from proctor.core.ids import AttemptKey
from proctor.core.trajectory.outcome import ExitCause, ProcessExit


@dataclass(frozen=True, slots=True)
class PrepareDataset:
    """Seed the scenario's dataset, unless its record is committed already."""

    scenario: str


@dataclass(frozen=True, slots=True)
class ServeDataset:
    """Let servers under test query the scenario's dataset, and it alone."""

    scenario: str


@dataclass(frozen=True, slots=True)
class ProveIsolation:
    """Show that a sandbox reaches nothing but the gateway."""


@dataclass(frozen=True, slots=True)
class StartGateway:
    """Start the run's gateway."""


@dataclass(frozen=True, slots=True)
class ProbeServers:
    """Start every server under test once, and pin the digest of its tool list."""


@dataclass(frozen=True, slots=True)
class StartGrader:
    """Start the grader; it grades attempts as they end."""


@dataclass(frozen=True, slots=True)
class StartAttempt:
    """Open an attempt at the gateway and start its sandbox."""

    key: AttemptKey


@dataclass(frozen=True, slots=True)
class StopAttempt:
    """Stop an attempt's sandbox with all that it started: TERM, 5 s, KILL of the group."""

    key: AttemptKey
    cause: ExitCause


@dataclass(frozen=True, slots=True)
class EndAttempt:
    """Tell the gateway how an attempt's process ended; its token holds no longer."""

    key: AttemptKey
    exit: ProcessExit


@dataclass(frozen=True, slots=True)
class FinishGrading:
    """Tell the grader that no more attempts will end."""


@dataclass(frozen=True, slots=True)
class ReleaseChildren:
    """Stop the gateway, the grader and the datasets' engines: the run is over."""


Action = (
    PrepareDataset
    | ServeDataset
    | ProveIsolation
    | StartGateway
    | ProbeServers
    | StartGrader
    | StartAttempt
    | StopAttempt
    | EndAttempt
    | FinishGrading
    | ReleaseChildren
)


def render_action(action: Action) -> str:
    """Say in one line what an action does."""
    match action:
        case PrepareDataset(scenario):
            return f"prepare dataset {scenario}"
        case ServeDataset(scenario):
            return f"serve dataset {scenario}"
        case StartAttempt(key):
            return f"start attempt {key}"
        case StopAttempt(key, cause):
            return f"stop attempt {key} ({cause})"
        case EndAttempt(key, exit_):
            return f"end attempt {key} ({exit_.cause})"
        case ProveIsolation() | StartGateway() | ProbeServers() | StartGrader() | FinishGrading() | ReleaseChildren():
            return _render_plain(action)
        case _:
            assert_never(action)


def _render_plain(
    action: ProveIsolation | StartGateway | ProbeServers | StartGrader | FinishGrading | ReleaseChildren,
) -> str:
    match action:
        case ProveIsolation():
            return "prove isolation"
        case StartGateway():
            return "start gateway"
        case ProbeServers():
            return "probe servers"
        case StartGrader():
            return "start grader"
        case FinishGrading():
            return "finish grading"
        case ReleaseChildren():
            return "release children"
        case _:
            assert_never(action)


@dataclass(frozen=True, slots=True)
class Plan:
    """One pass's decision.

    Attributes:
        actions: in the order in which they may be applied; each is idempotent.
        status: what to write afterwards, in one patch.
        changed: the status differs from what the run has.
    """

    actions: tuple[Action, ...]
    status: EvalRunStatus
    changed: bool

    @property
    def empty(self) -> bool:
        """Nothing is left to do until something new is seen."""
        return not self.actions and not self.changed

    def __str__(self) -> str:
        head = f"{self.status.phase}/{self.status.verdict}"
        return "\n".join([head, *(f"  {render_action(action)}" for action in self.actions)])
