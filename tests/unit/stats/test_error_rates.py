"""How often the verdict is wrong: 2,000 simulated runs per figure, through the intervals that real runs get.

Kinds of scores, each with its spread per cell:

* normal around 0.7, standard deviation 0.05 or 0.1;
* lapses: 0.88, 0.94 or 1.0, but 0, 0.2 or 0.4 in 3 or 10 of 100 cells (standard deviation 0.14 and 0.24);
* rare: 0.9 give or take 0.03, the candidate 0.8 lower in as many cells as make up its drop: steady, until it isn't;
* saturated: always 1.0, the candidate 0 in as many cells as make up its drop: replicates that mostly do not vary;
* grid: steps of 0.2 with a long tail, as one criterion of a judge.

With 2,000 runs a true rate of 2.5 % is seen above 3.5 % once in 400 times; the limit of 5 % leaves room for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from proctor.core.stats import BaselineArm, GateRules, Judgement, Side, settle
from proctor.core.stats.batches import Floats, estimate_batch
from proctor.core.stats.observations import DIFFERENCE, SCORE
from proctor.core.stats.power import RUNS, Chance, Lapses, NormalScores, Size, find_size, measure_power, simulate
from support.observations import controls, graded

MAX_DROP = 0.05


@dataclass(frozen=True)
class Rare:
    """Steady scores, and now and then a complete failure: what few cells seldom show."""

    deviation: float = 0.03

    def draw(self, random: np.random.Generator, shape: tuple[int, int], drop: float) -> Floats:
        steady = 0.9 + np.clip(random.normal(0, self.deviation, shape), -0.1, 0.1)
        return steady - np.where(random.random(shape) < drop / 0.8, 0.8, 0.0)


@dataclass(frozen=True)
class Saturated:
    """Everything is found, or nothing."""

    deviation: float = 0.0

    def draw(self, random: np.random.Generator, shape: tuple[int, int], drop: float) -> Floats:
        return np.where(random.random(shape) < drop, 0.0, 1.0)


@dataclass(frozen=True)
class Steps:
    """One criterion of a judge: 0 to 5, mostly 5; a drop mixes in a worse distribution."""

    deviation: float = 0.24

    def draw(self, random: np.random.Generator, shape: tuple[int, int], drop: float) -> Floats:
        steps = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
        good, bad = np.array([0.02, 0.03, 0.05, 0.1, 0.3, 0.5]), np.array([0.3, 0.3, 0.2, 0.1, 0.1, 0.0])
        share = drop / float(steps @ (good - bad))
        return np.asarray(random.choice(steps, size=shape, p=(1 - share) * good + share * bad))


KINDS: dict[str, Chance] = {
    "normal": NormalScores(0.1),
    "lapses-3": Lapses(0.03),
    "lapses-10": Lapses(0.1),
    "rare": Rare(),
    "saturated": Saturated(),
    "steps": Steps(),
}
SMALL = [Size(scenarios, replicates) for scenarios in (1, 2, 4) for replicates in (3, 5, 10)]


@pytest.mark.parametrize("max_drop", [0.05, 0.15])
@pytest.mark.parametrize("kind", KINDS)
def test_few_cells_do_not_let_a_drop_pass(kind: str, max_drop: float) -> None:
    """P31, statistics: a true drop of exactly maxDrop passes ≤ 5 %, at 3, 5, 10 replicates × 1, 2, 4 scenarios."""
    passed = {size: simulate(KINDS[kind], size, drop=max_drop, max_drop=max_drop).passed for size in SMALL}
    assert {size: share for size, share in passed.items() if share > 0.05} == {}


@pytest.mark.parametrize("kind", KINDS)
def test_few_cells_do_not_let_an_equal_pair_fail(kind: str) -> None:
    """P31, statistics: an A/A pair fails ≤ 5 %, at 3, 5, 10 replicates × 1, 2, 4 scenarios."""
    failed = {size: simulate(KINDS[kind], size, drop=0.0, max_drop=MAX_DROP).failed for size in SMALL}
    assert {size: share for size, share in failed.items() if share > 0.05} == {}


@pytest.mark.parametrize(
    ("chance", "scenarios", "max_drop"),
    [
        pytest.param(NormalScores(0.05), 4, 0.05, id="normal-0.05"),
        pytest.param(NormalScores(0.1), 4, 0.05, id="normal-0.1"),
        pytest.param(NormalScores(0.1), 1, 0.05, id="normal-0.1-one-scenario"),
        pytest.param(Lapses(0.03), 4, 0.1, id="lapses-3-of-100"),
    ],
)
def test_the_recommended_size_holds_all_stated_rates(chance: Chance, scenarios: int, max_drop: float) -> None:
    """P31, statistics: at the recommended size A/A passes ≥ 80 % and fails ≤ 5 %, the limit passes ≤ 5 %, twice it
    fails ≥ 80 %; measured anew with runs that the recommendation was not made from."""
    found = find_size(chance, scenarios, max_drop=max_drop, most=120, runs=600)
    assert found is not None
    power = measure_power(chance, found.size, max_drop=max_drop, runs=RUNS)
    # The recommendation itself is from 600 runs: twice its standard error is 3 of 100.
    assert power.equal.passed >= 0.80 - 0.03
    assert power.equal.failed <= 0.05
    assert power.limit.passed <= 0.05
    assert power.double.failed >= 0.80 - 0.03


@pytest.mark.parametrize("kind", ["normal", "lapses-10", "steps"])
def test_both_ends_of_a_difference_cover(kind: str) -> None:
    """P31: of intervals at 95 %, each end misses the true difference ≤ 5 % (a true drop of 0.15)."""
    for size in SMALL:
        rates = simulate(KINDS[kind], size, drop=0.15, max_drop=0.15)
        assert rates.passed <= 0.05, size
        assert rates.failed <= 0.05, size


@pytest.mark.parametrize("kind", ["normal", "lapses-3", "lapses-10", "saturated", "steps"])
def test_the_lower_end_of_an_arm_covers(kind: str) -> None:
    """P31, `minimum`: an arm whose true mean is just below the minimum passes ≤ 5 %."""
    random = np.random.default_rng(7)
    chance = KINDS[kind]
    drop = 0.1 if kind == "saturated" else 0.0
    true = float(chance.draw(random, (400_000, 1), drop).mean())
    for size in SMALL:
        strata = [chance.draw(random, (RUNS, size.replicates), drop) for _ in range(size.scenarios)]
        batch = estimate_batch(strata, SCORE, resamples=1000, seed=1)
        assert np.mean(batch.low > true + 1e-3) <= 0.05, size


def test_verdicts_follow_the_intervals_that_are_simulated() -> None:
    """The simulation is of the gate: 40 runs, settled one by one, end as the batch says."""
    random = np.random.default_rng(3)
    scenarios, replicates, runs = ("a", "b"), 12, 40
    base = {name: np.round(random.normal(0.7, 0.02, (runs, replicates)), 4) for name in scenarios}
    cand = {name: np.round(random.normal(0.55, 0.05, (runs, replicates)), 4) for name in scenarios}
    batch = estimate_batch([cand[name] - base[name] for name in scenarios], DIFFERENCE, resamples=4000, seed=5)
    rules = GateRules(max_drop=0.13, baseline=BaselineArm(Side.SERVER, "base"), seed=5)
    fixed = controls(scenarios, ["base", "cand"])
    verdicts = []
    for run in range(runs):
        cells = [*fixed]
        for name in scenarios:
            cells += graded(name, "base", base[name][run].tolist()) + graded(name, "cand", cand[name][run].tolist())
        settlement = settle(cells, rules)
        verdicts.append(settlement.verdict)
        (comparison,) = settlement.comparisons
        assert comparison.delta is not None
        assert comparison.delta.low == pytest.approx(float(batch.low[run]))
        assert comparison.delta.high == pytest.approx(float(batch.high[run]))
    assert verdicts == [
        Judgement.FAIL if high < -0.13 else Judgement.PASS if low >= -0.13 else Judgement.INCONCLUSIVE
        for low, high in zip(batch.low, batch.high, strict=True)
    ]
    assert len(set(verdicts)) > 1
