"""Two runs beside each other: what changed in inputs, arms, marks, cells and tools."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from proctor.core.ids import Arm, CellKey
from proctor.core.reports.run_inputs import InputChange, RunInputs, Weight, find_changes
from proctor.core.stats.observations import Observation
from proctor.core.stats.run_pairs import ArmChange, compare_runs
from proctor.core.stats.tools import ToolFigures
from proctor.core.trajectory.outcome import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCell:
    """A cell as far as it is compared.

    Attributes:
        marks: by criterion, what it earned: of a check 1 or 0, of a judge 0 to 5.
    """

    observation: Observation
    marks: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSide:
    """One of two runs.

    Attributes:
        name: the run's.
        verdict: its word.
        reason: machine word.
        inputs: what it was given.
        cells: all but the controls.
        scripted: its models without any chance in them.
    """

    name: str
    verdict: str
    reason: str
    inputs: RunInputs
    cells: tuple[ComparedCell, ...]
    scripted: frozenset[str]


@dataclass(frozen=True, slots=True)
class Usage:
    """What an arm used: means over its cells with an attempt; None without one, and where a price is unknown."""

    tool_calls: float | None
    tokens: float | None
    seconds: float | None
    usd: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmComparison:
    """One arm in both runs."""

    change: ArmChange
    usage: tuple[Usage, Usage]
    outcomes: tuple[Mapping[Outcome, int], Mapping[Outcome, int]]


@dataclass(frozen=True, slots=True)
class MarkChange:
    """One criterion of a scenario in one arm.

    Attributes:
        gained: pairs in which it earns more in the second run.
        lost: pairs in which it earns less.
        pairs: cells that have it in both.
    """

    scenario: str
    arm: Arm
    mark: str
    gained: int
    lost: int
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChange:
    """One cell that is not as it was.

    Attributes:
        scores: in both runs; None where it has none.
        endings: outcome, or fate where there is no attempt.
        gained: marks that earn more.
        lost: marks that earn less.
    """

    cell: CellKey
    scores: tuple[float | None, float | None]
    endings: tuple[str, str]
    gained: tuple[str, ...]
    lost: tuple[str, ...]

    @property
    def difference(self) -> float:
        """Second score less first; a lost score counts as the whole of it."""
        return (self.scores[1] or 0.0) - (self.scores[0] or 0.0)


@dataclass(frozen=True, slots=True)
class ToolChange:
    """One tool of one arm; None where a run has no call of it."""

    before: ToolFigures | None
    after: ToolFigures | None

    @property
    def arm(self) -> Arm:
        """Whose it is."""
        return self._either.arm

    @property
    def tool(self) -> str:
        """Its name."""
        return self._either.tool

    @property
    def _either(self) -> ToolFigures:
        figures = self.before or self.after
        if figures is None:
            raise ValueError("a tool that neither run called")
        return figures


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """Two runs, compared.

    Attributes:
        inputs: what they were given that differs.
        pairs: cells that both have.
        unmatched: cells that only the first has, and only the second.
        arms: those that both have.
        marks: those that changed in any pair.
        cells: those that changed, the largest loss first.
        tools: None where the store was not read.
        notes: what else has to be known.
    """

    before: RunSide
    after: RunSide
    inputs: tuple[InputChange, ...]
    pairs: int
    unmatched: tuple[tuple[CellKey, ...], tuple[CellKey, ...]]
    arms: tuple[ArmComparison, ...]
    marks: tuple[MarkChange, ...]
    cells: tuple[CellChange, ...]
    tools: tuple[ToolChange, ...] | None = None
    notes: tuple[str, ...] = ()

    @property
    def comparable(self) -> bool:
        """Whether a difference of scores says anything about the agents."""
        return not any(change.weight is Weight.BREAKS for change in self.inputs)

    def with_tools(self, before: Sequence[ToolFigures], after: Sequence[ToolFigures]) -> RunComparison:
        """Return it with what tools did in both runs, which is read from elsewhere."""
        left = {(figures.arm, figures.tool): figures for figures in before}
        right = {(figures.arm, figures.tool): figures for figures in after}
        changes = [ToolChange(left.get(key), right.get(key)) for key in sorted(left.keys() | right.keys())]
        return replace(self, tools=tuple(changes))

    def with_note(self, note: str) -> RunComparison:
        """Return it with something more that has to be known."""
        return replace(self, notes=(*self.notes, note))


def compare(before: RunSide, after: RunSide, *, seed: int) -> RunComparison:
    """Compare two runs cell by cell: pairs are cells of the same scenario, server, model and replicate.

    Args:
        before: the first.
        after: the second.
        seed: of resampling.
    """
    left = {cell.observation.cell: cell for cell in before.cells}
    right = {cell.observation.cell: cell for cell in after.cells}
    both = sorted(left.keys() & right.keys())
    pairs = [(left[key], right[key]) for key in both]
    return RunComparison(
        before=before,
        after=after,
        inputs=find_changes(before.inputs, after.inputs),
        pairs=len(pairs),
        unmatched=(tuple(sorted(left.keys() - right.keys())), tuple(sorted(right.keys() - left.keys()))),
        arms=_compare_arms(before, after, seed=seed),
        marks=_compare_marks(pairs),
        cells=tuple(
            sorted(
                (change for pair in pairs if (change := _compare_cell(*pair)) is not None),
                key=lambda change: (change.difference, change.cell),
            )
        ),
    )


def _compare_arms(before: RunSide, after: RunSide, *, seed: int) -> tuple[ArmComparison, ...]:
    sides = [[cell.observation for cell in side.cells] for side in (before, after)]
    changes = compare_runs(*sides, seed=seed, scripted=before.scripted & after.scripted)
    found = []
    for change in changes:
        left, right = ([one for one in side if one.cell.arm == change.arm] for side in sides)
        found.append(
            ArmComparison(
                change=change,
                usage=(_use(left), _use(right)),
                outcomes=(_count_outcomes(left), _count_outcomes(right)),
            )
        )
    return tuple(found)


def _use(cells: Iterable[Observation]) -> Usage:
    tried = [cell for cell in cells if cell.outcome is not None]
    if not tried:
        return Usage(None, None, None, None)
    count = len(tried)
    prices = [cell.usd for cell in tried if cell.usd is not None]
    return Usage(
        sum(cell.tool_calls for cell in tried) / count,
        sum(cell.tokens for cell in tried) / count,
        sum(cell.seconds for cell in tried) / count,
        sum(prices, Decimal(0)) / count if len(prices) == count else None,
    )


def _count_outcomes(cells: Iterable[Observation]) -> Mapping[Outcome, int]:
    return Counter(cell.outcome for cell in cells if cell.outcome is not None)


def _compare_marks(pairs: Iterable[tuple[ComparedCell, ComparedCell]]) -> tuple[MarkChange, ...]:
    counts: dict[tuple[str, Arm, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for before, after in pairs:
        cell = before.observation.cell
        for mark in before.marks.keys() & after.marks.keys():
            count = counts[cell.scenario, cell.arm, mark]
            count[0] += after.marks[mark] > before.marks[mark]
            count[1] += after.marks[mark] < before.marks[mark]
            count[2] += 1
    found = [MarkChange(*key, *count) for key, count in sorted(counts.items()) if count[0] or count[1]]
    return tuple(sorted(found, key=lambda change: change.gained - change.lost))


def _compare_cell(before: ComparedCell, after: ComparedCell) -> CellChange | None:
    left, right = before.observation, after.observation
    shared = sorted(before.marks.keys() & after.marks.keys())
    change = CellChange(
        cell=left.cell,
        scores=(left.score, right.score),
        endings=(_end_of(left), _end_of(right)),
        gained=tuple(mark for mark in shared if after.marks[mark] > before.marks[mark]),
        lost=tuple(mark for mark in shared if after.marks[mark] < before.marks[mark]),
    )
    is_same = left.score == right.score and change.endings[0] == change.endings[1]
    return None if is_same and not change.gained and not change.lost else change


def _end_of(observation: Observation) -> str:
    return observation.fate.value if observation.outcome is None else observation.outcome.value
