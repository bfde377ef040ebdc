"""What statistics are made of: one line per cell, the rules it is held to, and what came out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from proctor.core.ids import Arm, CellKey
from proctor.core.stats.quantiles import ONE_SIDE
from proctor.core.trajectory.outcome import Outcome

TINY = 1e-9
"""Scores have at most a few decimals; differences below this come from adding in binary."""

SUCCESS_AT = 0.7
"""Score from which a cell counts as a success: most of the evidence found, and no decoy blamed."""


class CellFate(StrEnum):
    """What became of a cell; every cell has exactly one."""

    GRADED = "graded"
    UNGRADED = "ungraded"
    INFRA_ERRORED = "infra_errored"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One cell, once its run is over.

    Attributes:
        cell: which cell.
        fate: what became of it.
        score: in 0..1; None unless graded.
        outcome: how its counting attempt ended; None without one.
        tool_calls: of its counting attempt.
        tokens: all tokens of it.
        usd: what it cost; None where the price is unknown.
        seconds: how long it took, without waiting for the provider.
    """

    cell: CellKey
    fate: CellFate
    score: float | None = None
    outcome: Outcome | None = None
    tool_calls: int = 0
    tokens: int = 0
    usd: Decimal | None = None
    seconds: float = 0.0

    def __post_init__(self) -> None:
        """Refuse impossible states."""
        if (self.score is not None) != (self.fate is CellFate.GRADED):
            raise ValueError(f"cell {self.cell}: a score belongs to a graded cell, and only to it")


class Side(StrEnum):
    """What a comparison varies."""

    SERVER = "server"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class BaselineArm:
    """The server or model that the others are compared with."""

    side: Side
    name: str

    def holds(self, arm: Arm) -> bool:
        """Say whether an arm is on the baseline's side."""
        return self.name == (arm.server if self.side is Side.SERVER else arm.model)

    def marks(self, arm: Arm, side: Side) -> bool:
        """Say whether it is an arm's server, or its model, that makes it a baseline."""
        return side is self.side and self.holds(arm)

    def opposite(self, arm: Arm) -> Arm | None:
        """Return the baseline arm that a candidate arm is paired with."""
        return Arm(self.name, arm.model) if self.side is Side.SERVER else Arm(arm.server, self.name)

    def beside(self, server: str) -> str | None:
        """Return the server that another is measured against; None for the baseline, and where models are compared."""
        return self.name if self.side is Side.SERVER and server != self.name else None


@dataclass(frozen=True, slots=True)
class FormerSelves:
    """Servers as they were when they last passed, run again: each is the baseline of its present self.

    Attributes:
        pairs: names of a server and of its former self; a server that is new has none.
    """

    pairs: tuple[tuple[str, str], ...]

    def holds(self, arm: Arm) -> bool:
        """Say whether an arm is on the baseline's side."""
        return any(arm.server == former for _, former in self.pairs)

    def marks(self, arm: Arm, side: Side) -> bool:
        """Say whether it is an arm's server, or its model, that makes it a baseline."""
        return side is Side.SERVER and self.holds(arm)

    def opposite(self, arm: Arm) -> Arm | None:
        """Return the baseline arm that a candidate arm is paired with; None without one."""
        former = self.beside(arm.server)
        return None if former is None else Arm(former, arm.model)

    def beside(self, server: str) -> str | None:
        """Return the server that a candidate is measured against."""
        return dict(self.pairs).get(server)


Baseline = BaselineArm | FormerSelves


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRules:
    """What a run is held to.

    Attributes:
        minimum: least score; None if there is none.
        max_drop: most below the baseline; None if there is none.
        baseline: None where the suite names none, or none exists yet.
        baseline_missing: the suite asks for the last run that passed, and a server was in none.
        max_infra_percent: cells lost to infrastructure, of those that are no controls.
        max_ungraded_percent: cells without a grade, of those that are no controls.
        oracle_at_least: floor of the oracle's score.
        noop_at_most: ceiling of the noop's score.
        played_through: servers that the oracle itself played through; elsewhere it ran on the reference server.
        scripted: models whose scores have no chance in them: only these can be exact.
        seed: fixes resampling.
        success_at: score from which a cell counts as a success, for pass^k.
        tail: chance that an interval misses on one side; smaller in a run that is looked at more than once.
    """

    minimum: float | None = None
    max_drop: float | None = None
    baseline: Baseline | None = None
    baseline_missing: bool = False
    max_infra_percent: int = 10
    max_ungraded_percent: int = 10
    oracle_at_least: float = 0.95
    noop_at_most: float = 0.05
    played_through: frozenset[str] = frozenset()
    scripted: frozenset[str] = frozenset()
    seed: int = 0
    success_at: float = SUCCESS_AT
    tail: float = ONE_SIDE

    def is_scripted(self, *arms: Arm) -> bool:
        """Say whether none of the arms has a model with any chance in it."""
        return all(arm.model in self.scripted for arm in arms)

    def is_candidate(self, arm: Arm) -> bool:
        """Say whether an arm is judged: every arm that is not the baseline."""
        return self.baseline is None or not self.baseline.holds(arm)


class Judgement(StrEnum):
    """The verdict that a finished run's observations support."""

    PASS = "Pass"  # noqa: S105 - a verdict, not a password
    FAIL = "Fail"
    INCONCLUSIVE = "Inconclusive"
    ERROR = "Error"


class Reason(StrEnum):
    """Machine words for why; a gate may match on them."""

    WITHIN_MAX_DROP = "WithinMaxDrop"
    ABOVE_MINIMUM = "AboveMinimum"
    WITHIN_LIMITS = "WithinLimits"
    """Both thresholds were given, and both hold."""
    MEASURED_ONLY = "MeasuredOnly"
    """The suite sets no threshold."""
    BELOW_MINIMUM = "BelowMinimum"
    MAX_DROP_EXCEEDED = "MaxDropExceeded"
    CONTROL_REGRESSION = "ControlRegression"
    INTERVAL_TOO_WIDE = "IntervalTooWide"
    TOO_FEW_REPLICATES = "TooFewReplicates"
    UNGRADED_DECIDE = "UngradedDecide"
    """It would pass, but not with the candidate's ungraded cells counted as 0."""
    NO_BASELINE = "NoBaseline"
    ORACLE_BELOW_FLOOR = "OracleBelowFloor"
    NOOP_ABOVE_CEILING = "NoopAboveCeiling"
    CONTROLS_NOT_MEASURED = "ControlsNotMeasured"
    TOO_MANY_INFRA_ERRORS = "TooManyInfraErrors"
    TOO_MANY_UNGRADED = "TooManyUngraded"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is possible at all: no interval reaches beyond."""

    low: float
    high: float


SCORE = Bounds(0.0, 1.0)
DIFFERENCE = Bounds(-1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and where it may lie, at 95 %; in a run that is looked at more than once, at 95 % over all looks.

    Attributes:
        mean: mean of the scenarios' means.
        low: lower end.
        high: upper end.
        count: how many observations it is of.
        deterministic: no scenario varies and no model has any chance in it, so the interval is the point.
        sized: False where a scenario has one observation only: then the interval is all that is possible.
        error: standard error; 0 where nothing varies.
        degrees: Welch's degrees of freedom of the error; 0 where nothing varies.
    """

    mean: float
    low: float
    high: float
    count: int
    deterministic: bool = False
    sized: bool = True
    error: float = 0.0
    degrees: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFigures:
    """What an arm showed, in one scenario or in all.

    Attributes:
        scenario: None over all scenarios.
        score: None without a graded cell.
        spread: standard deviation within scenarios; None with fewer than two scores in each.
        consistency: share of replicate pairs whose scores differ by less than 0.1; None without a pair.
        pass_k: chance that k cells of a scenario all succeed; None with fewer cells than k.
        k: the k of `pass_k`.
        tool_calls: mean per cell with an attempt; None without one.
        tokens: sum.
        usd: sum; None where any price is unknown.
        seconds: mean per cell with an attempt; None without one.
        outcomes: how many cells ended in each way.
        fates: how many cells met each fate.
    """

    arm: Arm
    scenario: str | None
    score: Interval | None
    spread: float | None
    consistency: float | None
    pass_k: float | None
    k: int
    tool_calls: float | None
    tokens: int
    usd: Decimal | None
    seconds: float | None
    outcomes: dict[Outcome, int] = field(default_factory=dict)
    fates: dict[CellFate, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A candidate arm beside its baseline.

    Attributes:
        delta: paired differences, candidate less baseline; None without a pair.
        clustered: interval if scenarios were drawn from many; reported only; None with fewer than two scenarios.
        p: permutation p-value, after Holm's correction; reported only.
        minimum_detectable: smallest difference found in 80 of 100 runs of this size; None if that can't be said.
        replicates_needed: what would settle it if it is not settled; None where it is, or none would.
        spread_ratio: candidate's standard deviation over the baseline's; None where either is 0 or unknown.
    """

    candidate: Arm
    baseline: Arm
    candidate_score: Interval | None
    baseline_score: Interval | None
    pairs: int
    delta: Interval | None
    clustered: tuple[float, float] | None = None
    p: float | None = None
    minimum_detectable: float | None = None
    replicates_needed: int | None = None
    spread_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class ControlScores:
    """The worst scores of the controls; None where one was not measured."""

    oracle: float | None
    noop: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The outcome of a run, and what it rests on."""

    verdict: Judgement
    reason: Reason
    summary: str
    arms: tuple[ArmFigures, ...]
    by_scenario: tuple[ArmFigures, ...]
    comparisons: tuple[Comparison, ...]
    controls: ControlScores


def judged_only(observations: Iterable[Observation]) -> list[Observation]:
    """Return the observations that the verdict is about: all but the controls."""
    return [observation for observation in observations if observation.cell.control is None]
