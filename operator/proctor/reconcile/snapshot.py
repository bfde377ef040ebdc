"""The run that is decided on: its immutable inputs, and what people may still change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from proctor.api.run import EvalRunStatus
from proctor.api.suite import EvalSuiteSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSnapshot:
    """One EvalRun as a pass sees it.

    Attributes:
        name: for messages.
        uid: part of every attempt's identity.
        generation: of the run's spec; goes into the status with the verdict, in one patch.
        suite: the frozen, resolved suite; the run never reads the suite again.
        suite_digest: of `suite`.
        cancel: a person asked to end it.
        suspend: a person asked to start nothing new.
        active_since: when its deadline began to count; on one machine a resumed run gets its time anew.
        images: that its servers run, by server; none on one machine.
        status: as last written.
    """

    name: str
    uid: str
    generation: int
    suite: EvalSuiteSpec
    suite_digest: str
    cancel: bool = False
    suspend: bool = False
    active_since: datetime
    images: Mapping[str, str] = field(default_factory=dict)
    status: EvalRunStatus

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Names of the suite's scenarios, in the suite's order."""
        return tuple(scenario.name for scenario in self.suite.scenarios)

    @property
    def deadline(self) -> datetime:
        """When the run is past its own deadline."""
        return self.active_since + timedelta(seconds=self.suite.limits.active_deadline_seconds)

    @property
    def order_seed(self) -> int:
        """The seed of the order of cells: the same suite is always run in the same order (grading rule 10)."""
        return int(self.suite_digest[:12], 16)
