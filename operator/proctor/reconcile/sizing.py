"""A suite, a drop and a spread → how many replicates tell that drop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from proctor.api.fields import MAX_CELLS
from proctor.api.rules import LEAST_REPLICATES_TO_ENFORCE
from proctor.api.suite import MAX_ADAPTIVE_REPLICATES, EvalSuite
from proctor.core.ids import Arm
from proctor.core.reports.power import SizePlan, SizeRow
from proctor.core.stats.chances import FOUR_MARKS, Chance, Lapses, NormalScores, SeenScores
from proctor.core.stats.figures import strata_of
from proctor.core.stats.observations import ArmFigures, CellFate, Observation, judged_only
from proctor.core.stats.power import Power, Size, find_size, measure_power
from proctor.errors import InvalidInput
from proctor.reconcile.cells import looks_of
from proctor.reconcile.planning import describe_plan
from proctor.reconcile.rules import scripted_models

ASSUMED_DEVIATION = 0.1
"""Of a real model's scores in one scenario, where nobody has measured it yet."""
DEFAULT_DROP = 0.05
MOST_REPLICATES = 400
RUNS = 1000
"""Simulated per figure: a share is then right to about 2 of 100, and an answer takes seconds."""


SHAPES: Mapping[str, tuple[Chance, str]] = {
    "lapses": (Lapses(0.1), "0.88, 0.94 or 1, but 0, 0.2 or 0.4 in 10 of 100 cells"),
    "marks": (FOUR_MARKS, "0, 0.5, 0.83 or 1, mostly 1"),
}
"""Kinds of scores that are not normal, and how they are described."""
LEAST_SEEN = 10
"""Scores of an arm below which they say little of how its scores are drawn."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A number, and who said so."""

    value: float
    source: str


@dataclass(frozen=True, slots=True)
class StatedScores:
    """Where simulated scores come from, and who said so."""

    chance: Chance
    source: str

    @classmethod
    def normal(cls, spread: Stated) -> Self:
        """Return normal scores of a spread."""
        return cls(NormalScores(spread.value), f"normal around 0.7; {spread.source}")

    @classmethod
    def of_shape(cls, name: str) -> Self:
        """Return scores of one of `SHAPES`."""
        chance, words = SHAPES[name]
        return cls(chance, f"{name}: {words}")


def state_drop(suite: EvalSuite, asked: float | None) -> Stated:
    """Return the largest drop that may pass: as asked for, else the gate's, else a usual one."""
    if asked is not None:
        return Stated(asked, "--drop")
    if suite.spec.gate.max_drop is not None:
        return Stated(float(suite.spec.gate.max_drop), "the suite's maxDrop")
    return Stated(DEFAULT_DROP, "assumed: the suite has no maxDrop")


def measure_spread(run: str, arms: Sequence[ArmFigures]) -> Stated:
    """Return the spread that an earlier run's cells showed: its least steady arm's, within scenarios.

    Args:
        run: its name.
        arms: its figures over all scenarios.

    Raises:
        InvalidInput: no arm has two scores of one scenario.
    """
    measured = [(arm.spread, arm) for arm in arms if arm.spread is not None]
    if not measured:
        raise InvalidInput(f"run {run}: no arm has two scores of one scenario, so they show no spread; give --sd")
    spread, arm = max(measured, key=lambda item: item[0])
    return Stated(spread, f"run {run}: {arm.arm}, {arm.fates.get(CellFate.GRADED, 0)} cells")


def copy_scores(run: str, observations: Sequence[Observation]) -> StatedScores:
    """Return the scores that an earlier run's cells showed: its least steady arm's.

    Args:
        run: its name.
        observations: its cells.

    Raises:
        InvalidInput: no arm has enough scores.
    """
    arms: dict[Arm, list[Observation]] = defaultdict(list)
    for each in judged_only(observations):
        arms[each.cell.arm].append(each)
    seen = [(SeenScores.of(strata), arm) for arm, cells in arms.items() if (strata := strata_of(cells))]
    enough = [(scores, arm) for scores, arm in seen if len(scores.scores) >= LEAST_SEEN]
    if not enough:
        raise InvalidInput(f"run {run}: no arm has {LEAST_SEEN} scores, so they show no shape; give --scores or --sd")
    scores, arm = max(enough, key=lambda item: item[0].deviation)
    return StatedScores(scores, f"as run {run} showed them: {arm}, {len(scores.scores)} cells")


def plan_size(suite: EvalSuite, drop: Stated, scores: StatedScores | None) -> SizePlan:
    """Return how many replicates a suite needs so that the gate can tell a drop.

    Args:
        suite: for its scenarios, whether its replicates are adaptive, and what its cells cost.
        drop: largest that may pass.
        scores: where a cell's score comes from; None to assume a usual spread.
    """
    spec = suite.spec
    scripted = scripted_models(spec) == {model.name for model in spec.models}
    if scores is None and scripted:
        scores = StatedScores(NormalScores(0.0), "all models are scripted, and no judge takes part")
    elif scores is None:
        assumed = "assumed; --sd, --scores, --from RUN or --like RUN gives better ones"
        scores = StatedScores.normal(Stated(ASSUMED_DEVIATION, assumed))
    exact = scripted and scores.chance.deviation == 0
    best = None if exact else _find(suite, drop.value, scores.chance)
    enough = None if best is None else best.size.replicates
    return SizePlan(
        suite=suite.metadata.name,
        scenarios=len(spec.scenarios),
        max_drop=drop.value,
        max_drop_from=drop.source,
        deviation=scores.chance.deviation,
        scores=scores.source,
        first=_first(suite),
        replicates=LEAST_REPLICATES_TO_ENFORCE if exact else enough,
        most=_most(suite),
        runs=0 if exact else RUNS,
        sizes=() if exact else tuple(_rows(suite, drop.value, scores.chance, best)),
        notes=tuple(_notes(suite, scores.chance, exact=exact)),
    )


def _first(suite: EvalSuite) -> int | None:
    return None if suite.spec.adaptive is None else suite.spec.replicates


def _most(suite: EvalSuite) -> int:
    spec = suite.spec
    per_replicate = len(spec.servers) * len(spec.models) * len(spec.scenarios)
    most = MOST_REPLICATES if spec.adaptive is None else MAX_ADAPTIVE_REPLICATES
    return min(most, MAX_CELLS // per_replicate)


def _find(suite: EvalSuite, drop: float, chance: Chance) -> Power | None:
    scenarios = len(suite.spec.scenarios)
    return find_size(chance, scenarios, max_drop=drop, most=_most(suite), first=_first(suite), runs=RUNS)


def _rows(suite: EvalSuite, drop: float, chance: Chance, best: Power | None) -> list[SizeRow]:
    own = max(looks_of(suite.spec)[-1], 2)
    top = best.size.replicates if best is not None else _most(suite)
    scenarios = len(suite.spec.scenarios)
    powers = {top: best} if best is not None else {}
    for replicates in {own, max(top // 2, 2), top}:
        if replicates not in powers:
            size = Size(scenarios, replicates, _first(suite))
            powers[replicates] = measure_power(chance, size, max_drop=drop, runs=RUNS)
    return [_row(suite, powers[replicates]) for replicates in sorted(powers)]


def _row(suite: EvalSuite, power: Power) -> SizeRow:
    size = power.size
    looks = size.looks
    changes: dict[str, object] = {"replicates": looks[0]}
    if suite.spec.adaptive is not None:
        changes["adaptive"] = suite.spec.adaptive.model_copy(update={"max_replicates": looks[-1]})
    plan = describe_plan(suite.model_copy(update={"spec": suite.spec.model_copy(update=changes)}))
    return SizeRow(
        replicates=size.replicates,
        pairs=size.pairs,
        least_cells=(plan.least or plan.most).cells,
        cells=plan.most.cells,
        usd=plan.most.usd,
        equal_passes=power.equal.passed,
        limit_passes=power.limit.passed,
        double_fails=power.double.failed,
        equal_takes=power.equal.replicates,
        double_takes=power.double.replicates,
    )


def _notes(suite: EvalSuite, chance: Chance, *, exact: bool) -> list[str]:
    notes = []
    if suite.spec.gate.baseline is None:
        notes.append("the suite names no baseline: until it does, no drop is judged")
    if not exact and isinstance(chance, NormalScores):
        notes.append(
            "normal scores have no outliers; agents that now and then fail outright need more: --scores lapses"
        )
    return notes
