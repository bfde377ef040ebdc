"""A suite, a drop and a spread → how many replicates tell that drop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.api.fields import MAX_CELLS
from proctor.api.rules import LEAST_REPLICATES_TO_ENFORCE
from proctor.api.suite import EvalSuite
from proctor.core.reports.power import SizePlan, SizeRow
from proctor.core.stats.chances import NormalScores
from proctor.core.stats.observations import ArmFigures, CellFate
from proctor.core.stats.power import Power, Size, find_size, measure_power
from proctor.errors import InvalidInput
from proctor.reconcile.planning import describe_plan
from proctor.reconcile.rules import scripted_models

ASSUMED_DEVIATION = 0.1
"""Of a real model's scores in one scenario, where nobody has measured it yet."""
DEFAULT_DROP = 0.05
MOST_REPLICATES = 400
RUNS = 1000
"""Simulated per figure: a share is then right to about 2 of 100, and an answer takes seconds."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A number, and who said so."""

    value: float
    source: str


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


def plan_size(suite: EvalSuite, drop: Stated, spread: Stated | None) -> SizePlan:
    """Return how many replicates a suite needs so that the gate can tell a drop.

    Args:
        suite: for its scenarios, and what its cells cost.
        drop: largest that may pass.
        spread: standard deviation of a cell's score; None to assume a usual one.
    """
    spec = suite.spec
    scripted = scripted_models(spec) == {model.name for model in spec.models}
    if spread is None and scripted:
        spread = Stated(0.0, "all models are scripted, and no judge takes part")
    elif spread is None:
        spread = Stated(ASSUMED_DEVIATION, "assumed; --sd or --from RUN gives a better one")
    exact = scripted and spread.value == 0
    best = None if exact else _find(suite, drop.value, spread.value)
    enough = None if best is None else best.size.replicates
    return SizePlan(
        suite=suite.metadata.name,
        scenarios=len(spec.scenarios),
        max_drop=drop.value,
        max_drop_from=drop.source,
        deviation=spread.value,
        deviation_from=spread.source,
        replicates=LEAST_REPLICATES_TO_ENFORCE if exact else enough,
        most=_most(suite),
        runs=0 if exact else RUNS,
        sizes=() if exact else tuple(_rows(suite, drop.value, spread.value, best)),
        notes=tuple(_notes(suite, exact=exact)),
    )


def _most(suite: EvalSuite) -> int:
    spec = suite.spec
    per_replicate = len(spec.servers) * len(spec.models) * len(spec.scenarios)
    return min(MOST_REPLICATES, MAX_CELLS // per_replicate)


def _find(suite: EvalSuite, drop: float, deviation: float) -> Power | None:
    scenarios = len(suite.spec.scenarios)
    return find_size(NormalScores(deviation), scenarios, max_drop=drop, most=_most(suite), runs=RUNS)


def _rows(suite: EvalSuite, drop: float, deviation: float, best: Power | None) -> list[SizeRow]:
    own = max(suite.spec.replicates, 2)
    top = best.size.replicates if best is not None else _most(suite)
    scenarios = len(suite.spec.scenarios)
    powers = {top: best} if best is not None else {}
    for replicates in {own, max(top // 2, 2), top}:
        if replicates not in powers:
            powers[replicates] = measure_power(
                NormalScores(deviation), Size(scenarios, replicates), max_drop=drop, runs=RUNS
            )
    return [_row(suite, powers[replicates]) for replicates in sorted(powers)]


def _row(suite: EvalSuite, power: Power) -> SizeRow:
    replicates = power.size.replicates
    sized = suite.model_copy(update={"spec": suite.spec.model_copy(update={"replicates": replicates})})
    plan = describe_plan(sized)
    return SizeRow(
        replicates=replicates,
        pairs=power.size.pairs,
        cells=plan.cells,
        usd=plan.usd,
        equal_passes=power.equal.passed,
        limit_passes=power.limit.passed,
        double_fails=power.double.failed,
    )


def _notes(suite: EvalSuite, *, exact: bool) -> list[str]:
    notes = []
    if suite.spec.gate.baseline is None:
        notes.append("the suite names no baseline: until it does, no drop is judged")
    if not exact:
        notes.append("scores are simulated as normal around 0.7; agents that now and then fail outright need more")
    return notes
