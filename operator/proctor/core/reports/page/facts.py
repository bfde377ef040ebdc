"""What a page shows of a run. Whoever has a run, on one machine or in a cluster, brings it into this form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from proctor.core.ids import CellKey
from proctor.core.reports.table import ResultReport
from proctor.core.stats.observations import TINY
from proctor.core.stats.tools import ToolFigures
from proctor.core.trajectory.events import Event
from proctor.core.trajectory.outcome import AttemptRecord, Outcome


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of what identifies a run."""

    label: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """What the run is held to.

    Attributes:
        minimum: least score; None if there is none.
        max_drop: most below the baseline; None if there is none.
        oracle_at_least: floor of the oracle's score.
        noop_at_most: ceiling of the noop's score.
        replicates: of the suite.
        max_replicates: up to which they are added; None where they are fixed.
    """

    minimum: float | None
    max_drop: float | None
    oracle_at_least: float
    noop_at_most: float
    replicates: int
    max_replicates: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFacts:
    """Who judged.

    Attributes:
        agreement: Krippendorff's alpha of the votes; None where nothing can be said.
    """

    model: str
    votes: int
    agreement: Decimal | None
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlFacts:
    """The controls of one scenario and server; None where one has no score."""

    scenario: str
    server: str
    oracle: Decimal | None
    noop: Decimal | None

    def in_line(self, limits: RunLimits) -> bool:
        """Say whether both scores are as they must be."""
        if self.oracle is None or self.noop is None:
            return False
        return float(self.oracle) >= limits.oracle_at_least - TINY and float(self.noop) <= limits.noop_at_most + TINY


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkFacts:
    """One criterion's outcome, and why.

    Attributes:
        judged: a judge gave it, else a check.
        polarity: of a check: whether it is to be met or to be avoided.
        satisfied: of a check: whether it pays.
        score: of a judge's mark: the median of the votes, from 0 to 5.
        votes: of a judge's mark.
    """

    id: str
    weight: str
    why: str
    judged: bool
    polarity: str = ""
    satisfied: bool = False
    score: str = ""
    votes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CellFacts:
    """One cell as run.json has it.

    Attributes:
        state: what became of it.
        score: None unless it is graded.
        outcome: how its counting attempt ended; None without one.
        reason: why, in one line.
        ungraded: why there is no grade; empty where there is one.
        remark: why the checks give nothing, where that is so.
        attempts: how many were started.
        attempt: the one that counts; 0 without one.
        tool_errors: of the agent and of the server; what infrastructure failed is in neither.
        waited: seconds spent waiting for an overloaded provider; not part of `seconds`.
    """

    key: CellKey
    state: str
    score: Decimal | None
    outcome: Outcome | None
    reason: str
    ungraded: str = ""
    remark: str = ""
    attempts: int = 0
    attempt: int = 0
    turns: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: Decimal | None = None
    seconds: float = 0.0
    waited: float = 0.0
    programmatic: str = ""
    judge: str = ""
    penalty: str = ""
    marks: tuple[MarkFacts, ...] = ()

    @property
    def tokens(self) -> int:
        """All tokens of the counting attempt."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTrajectory:
    """What is stored of a cell.

    Attributes:
        record: the attempt that is shown.
        events: its events, in order.
        others: other attempts of the cell, which infrastructure failed.
        bodies: requests and results by digest, as far as they were kept and are to be shown.
    """

    record: AttemptRecord
    events: tuple[Event, ...]
    others: tuple[AttemptRecord, ...] = ()
    bodies: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """A run, as its page has it.

    Attributes:
        result: verdict, arms, comparisons.
        suite: the suite's name.
        enforcement: whether the verdict stops anybody.
        limits: what the run is held to.
        counts: cells by what became of them, in the order to be shown.
        controls: per scenario and server.
        judge: None where checks alone graded.
        cells: all of them.
        tools: per arm and tool.
        trajectories: by cell.
        whole: of how many cells bodies were looked for, the lowest scores first; None if of all.
        notes: what whoever reads the scores has to know about how they came about.
        identity: what the run was fixed to.
        started: None before it started.
        ended: None before it was over.
        version: of Proctor.
    """

    result: ResultReport
    suite: str
    enforcement: str
    limits: RunLimits
    counts: Mapping[str, int]
    controls: tuple[ControlFacts, ...]
    judge: JudgeFacts | None
    cells: tuple[CellFacts, ...]
    tools: tuple[ToolFigures, ...] = ()
    trajectories: Mapping[CellKey, CellTrajectory] = field(default_factory=dict)
    whole: int | None = None
    notes: tuple[str, ...] = ()
    identity: tuple[Fact, ...] = ()
    started: datetime | None = None
    ended: datetime | None = None
    version: str = ""

    @property
    def judged_cells(self) -> tuple[CellFacts, ...]:
        """The cells that the verdict is about: all but the controls."""
        return tuple(cell for cell in self.cells if cell.key.control is None)
