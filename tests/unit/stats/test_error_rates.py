"""How often the verdict is wrong: 2,000 simulated runs per figure, through the intervals that real runs get.

Kinds of scores, each with its spread per cell, are in `core.stats.chances`, sizes in `core.reports.power_table`:

* normal around 0.7, standard deviation 0.05 or 0.1;
* lapses: 0.88, 0.94 or 1.0, but 0, 0.2 or 0.4 in 3 or 10 of 100 cells (standard deviation 0.14 and 0.24);
* rare: 0.9 give or take 0.03, the candidate 0.8 lower in as many cells as make up its drop: steady, until it isn't;
* saturated: always 1.0, the candidate 0 in as many cells as make up its drop: replicates that mostly do not vary;
* marks: steps of 0.2 with a long tail, as one criterion of a judge (standard deviation 0.24); 0, 0.5, 0.83 or 1, as a
  short rubric (0.25).

With adaptive replicates the same verdicts are looked for after every block, and the first that is found counts.

What the page shows is measured by `make test-drills`; the single sizes and the ends of intervals by every `make test`.

With 2,000 runs a true rate of 2.5 % is seen above 3.5 % once in 400 times; the limit of 5 % leaves room for the rest.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from proctor.core.reports.power_table import (
    GROWING,
    KINDS,
    SIZES,
    SMALL,
    SMALL_GROWING,
    SmallRuns,
    measure_growing,
    measure_sizes,
    measure_small,
    render_tables,
)
from proctor.core.stats import BaselineArm, GateRules, Judgement, Side, settle
from proctor.core.stats.batches import estimate_batch
from proctor.core.stats.chances import AllOrNothing, Chance, Lapses, NormalScores
from proctor.core.stats.observations import DIFFERENCE, SCORE
from proctor.core.stats.power import ENOUGH, RUNS, Power, find_size, measure_power, simulate
from proctor.core.stats.quantiles import student_t
from proctor.core.stats.sequential import tails_of
from support.observations import controls, graded

PAGE = Path(__file__).resolve().parents[3] / "docs" / "statistics.md"
RECOMMENDED = {("normal, sd 0.05", (4, 18)), ("normal, sd 0.10", (4, 22)), ("normal, sd 0.10", (8, 11))}
RECOMMENDED |= {("lapses in 10 % of cells", (4, 140))}


@pytest.fixture(scope="module")
def sizes() -> list[Power]:
    return measure_sizes()


@pytest.fixture(scope="module")
def growing() -> list[Power]:
    return measure_growing()


@pytest.fixture(scope="module")
def small() -> list[SmallRuns]:
    return measure_small()


@pytest.mark.drill
def test_few_cells_hold_the_stated_rates(small: list[SmallRuns]) -> None:
    """P31, statistics: a true drop of exactly maxDrop passes ≤ 5 %, an A/A pair fails ≤ 5 %, for every kind of scores
    at 3, 5, 10 replicates × 1, 2, 4 scenarios, and with adaptive replicates up to 10, 12, 15; the same intervals
    without their allowances do not hold them."""
    assert [row.name for row in small if row.passed > 0.05 or row.failed > 0.05] == []
    assert [row.name for row in small if row.grown_passed > 0.05 or row.grown_failed > 0.05] == []
    assert max(row.plain for row in small) > 0.5


@pytest.mark.drill
def test_sizes_hold_the_stated_rates(sizes: list[Power]) -> None:
    """P31, statistics: at every size the limit passes ≤ 5 % and A/A fails ≤ 5 %; at the recommended ones A/A passes
    ≥ 80 % and twice the limit fails ≥ 80 %."""
    told = set()
    for (name, _, _, size), power in zip(SIZES, sizes, strict=True):
        assert power.limit.passed <= 0.05, (name, size)
        assert power.equal.failed <= 0.05, (name, size)
        where = (name, (size.scenarios, size.replicates))
        if where in RECOMMENDED:
            told.add(where)
            assert power.equal.passed >= ENOUGH, where
            assert power.double.failed >= ENOUGH, where
    assert told == RECOMMENDED


@pytest.mark.drill
def test_growing_runs_hold_the_stated_rates_wherever_they_stop(growing: list[Power]) -> None:
    """Adaptive, statistics: at every recommended size, for normal scores, lapses and discrete marks, the limit passes
    ≤ 5 %, A/A fails ≤ 5 % and passes ≥ 80 %, twice the limit fails ≥ 80 %; and it takes fewer cells on average."""
    for (name, _, _, size), power in zip(GROWING, growing, strict=True):
        assert power.limit.passed <= 0.05, (name, size)
        assert power.equal.failed <= 0.05, (name, size)
        assert power.equal.passed >= ENOUGH, (name, size)
        assert power.double.failed >= ENOUGH, (name, size)
        assert power.equal.replicates <= 0.9 * size.replicates, (name, size)
        assert power.double.replicates <= 0.85 * size.replicates, (name, size)


def test_looking_often_with_plain_intervals_would_not_hold_the_rates() -> None:
    """Adaptive: why looks have levels of their own. At the limit a plain interval at each look errs about twice as
    often as one look does; the levels that are used keep it below."""
    random = np.random.default_rng(5)
    looks, runs = (10, 15, 20, 25, 30), 4000
    values = random.normal(0.0, 0.1, (runs, looks[-1]))
    plain, levelled = np.zeros(runs, dtype=bool), np.zeros(runs, dtype=bool)
    for look, tail in zip(looks, tails_of(looks), strict=True):
        mean = values[:, :look].mean(axis=1)
        error = values[:, :look].std(axis=1, ddof=1) / np.sqrt(look)
        plain |= mean > student_t(look - 1) * error
        levelled |= mean > student_t(look - 1, tail) * error
    assert plain.mean() > 0.05
    assert levelled.mean() <= 0.025


@pytest.mark.drill
def test_the_page_shows_the_tables_that_are_measured(
    sizes: list[Power], growing: list[Power], small: list[SmallRuns]
) -> None:
    """Issue: the power table in docs/statistics.md is printed by the code; `python bench/power.py` prints it anew."""
    shown = PAGE.read_text("utf-8").split("<!-- simulated -->")[1].strip()
    assert shown == render_tables(sizes, growing, small)


@pytest.mark.parametrize(
    ("chance", "scenarios", "max_drop", "first"),
    [
        pytest.param(NormalScores(0.1), 4, 0.05, None, id="normal-0.1"),
        pytest.param(NormalScores(0.1), 4, 0.05, 5, id="normal-0.1-adaptive"),
        pytest.param(Lapses(0.03), 4, 0.1, None, id="lapses-3-of-100"),
    ],
)
def test_the_recommended_size_holds_all_stated_rates(
    chance: Chance, scenarios: int, max_drop: float, first: int | None
) -> None:
    """P31, statistics: at the recommended size A/A passes ≥ 80 % and fails ≤ 5 %, the limit passes ≤ 5 %, twice it
    fails ≥ 80 %; measured anew with runs that the recommendation was not made from."""
    found = find_size(chance, scenarios, max_drop=max_drop, most=120, first=first, runs=600)
    assert found is not None
    power = measure_power(chance, found.size, max_drop=max_drop, runs=RUNS)
    # The recommendation itself is from 600 runs: twice its standard error is 3 of 100.
    assert power.equal.passed >= 0.80 - 0.03
    assert power.equal.failed <= 0.05
    assert power.limit.passed <= 0.05
    assert power.double.failed >= 0.80 - 0.03


@pytest.mark.parametrize(("name", "chance"), KINDS)
def test_the_lower_end_of_an_arm_covers(name: str, chance: Chance) -> None:
    """P31, `minimum`: an arm whose true mean is just below the minimum passes ≤ 5 %."""
    random = np.random.default_rng(7)
    drop = 0.1 if isinstance(chance, AllOrNothing) else 0.0
    true = float(chance.draw(random, (400_000, 1), drop).mean())
    for size in SMALL:
        strata = [chance.draw(random, (RUNS, size.replicates), drop) for _ in range(size.scenarios)]
        batch = estimate_batch(strata, SCORE, resamples=250, seed=1)
        assert np.mean(batch.low > true + 1e-3) <= 0.05, (name, size)


@pytest.mark.parametrize(("name", "chance"), KINDS)
def test_the_lower_end_of_an_arm_covers_over_all_looks(name: str, chance: Chance) -> None:
    """Adaptive, `minimum`: an arm whose true mean is just below the minimum passes at any look in ≤ 5 % of runs."""
    random = np.random.default_rng(9)
    drop = 0.1 if isinstance(chance, AllOrNothing) else 0.0
    true = float(chance.draw(random, (400_000, 1), drop).mean())
    for size in SMALL_GROWING:
        strata = [chance.draw(random, (RUNS, size.replicates), drop) for _ in range(size.scenarios)]
        passed = np.zeros(RUNS, dtype=bool)
        for look, tail in zip(size.looks, tails_of(size.looks), strict=True):
            seen = [values[:, :look] for values in strata]
            passed |= estimate_batch(seen, SCORE, resamples=250, seed=1, tail=tail).low > true + 1e-3
        assert passed.mean() <= 0.05, (name, size)


def test_the_upper_end_of_a_difference_covers() -> None:
    """P31: a candidate that is exactly at the limit fails ≤ 5 %: grids and lapses at few cells, a drop of 0.15."""
    for name, chance in KINDS:
        failed = {size: simulate(chance, size, drop=0.15, max_drop=0.15).failed for size in SMALL[::2]}
        assert {size: share for size, share in failed.items() if share > 0.05} == {}, name


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
