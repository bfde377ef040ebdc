"""Figures beside the verdict: each line of what is reported, against an account of it that is made another way."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.core.ids import CellKey
from proctor.core.stats import BaselineArm, CellFate, GateRules, Judgement, Observation, Reason, Side, settle
from proctor.core.stats.batches import estimate_batch
from proctor.core.stats.chances import NormalScores
from proctor.core.stats.figures import consistency_of, pass_k_of
from proctor.core.stats.intervals import estimate_mean, permutation_p
from proctor.core.stats.observations import DIFFERENCE, SCORE
from proctor.core.stats.power import Size, simulate
from proctor.core.stats.quantiles import NORMAL
from proctor.core.stats.sizing import Shape
from proctor.core.trajectory.outcome import Outcome
from support.observations import controls, graded, lost

BASE, CAND = "base", "cand"
RULES = GateRules(max_drop=0.05, baseline=BaselineArm(Side.SERVER, BASE), seed=3)
SCORES = st.lists(st.sampled_from([0.0, 0.5, 0.83, 1.0]), min_size=3, max_size=7)


def run_of(candidate: dict[str, list[float]], baseline: dict[str, list[float]]) -> list[Observation]:
    cells = controls(list(candidate), [BASE, CAND])
    for scenario, scores in candidate.items():
        cells += graded(scenario, BASE, baseline[scenario]) + graded(scenario, CAND, scores)
    return cells


def test_the_bootstrap_is_the_textbooks() -> None:
    """Statistics: bias-corrected and accelerated; with many values, Efron's BCa by jackknife gives the same end."""
    random = np.random.default_rng(8)
    values = random.beta(0.6, 3.0, 300)
    batch = estimate_batch([values[None, :]], SCORE, resamples=20_000, seed=1, honest=False)
    means = np.sort(values[random.integers(0, 300, (20_000, 300))].mean(axis=1))
    bias = NORMAL.inv_cdf(float((means < values.mean()).mean()))
    left_out = (values.sum() - values) / (len(values) - 1)
    pulls = left_out.mean() - left_out
    acceleration = float((pulls**3).sum() / (6 * (pulls**2).sum() ** 1.5))
    z = bias + NORMAL.inv_cdf(0.975)
    high = np.quantile(means, NORMAL.cdf(bias + z / (1 - acceleration * z)))
    width = float(batch.high[0] - batch.mean[0])
    assert float(batch.high[0]) == pytest.approx(float(high), abs=0.03 * width)
    # To the side of the short tail Student's interval is the wider one, and counts.
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert float(batch.low[0]) <= values.mean() - 1.95 * error


@given(SCORES)
def test_pass_k_is_the_share_of_triples_that_all_succeed(scores: list[float]) -> None:
    """Statistics, pass^k: three cells drawn from those of a scenario, counted one by one."""
    triples = list(combinations(scores, 3))
    share = sum(min(triple) >= 0.7 for triple in triples) / len(triples)
    assert pass_k_of([scores], 0.7) == pytest.approx(share)


@given(st.lists(SCORES, min_size=1, max_size=3))
def test_consistency_is_counted_within_scenarios(strata: list[list[float]]) -> None:
    """Statistics, consistency: pairs of replicates of one scenario that differ by less than 0.1, never across."""
    pairs = [pair for scores in strata for pair in combinations(scores, 2)]
    assert consistency_of(strata) == pytest.approx(sum(abs(a - b) < 0.1 - 1e-9 for a, b in pairs) / len(pairs))


def test_consistency_stands_beside_the_spread_and_its_ratio() -> None:
    """Statistics: consistency with the standard deviation, and between arms the ratio of the two deviations."""
    settlement = settle(run_of({"s": [0.2, 0.6, 1.0, 0.6]}, {"s": [0.5, 0.6, 0.7, 0.6]}), RULES)
    spread = {arm.arm.server: arm.spread for arm in settlement.arms}
    (comparison,) = settlement.comparisons
    assert spread[CAND] == pytest.approx(4 * (spread[BASE] or 0))
    assert comparison.spread_ratio == pytest.approx(4)
    assert [arm.consistency for arm in settlement.arms] == [pytest.approx(1 / 6), pytest.approx(1 / 6)]
    still = settle(run_of({"s": [0.2, 0.6, 1.0]}, {"s": [0.5] * 3}), RULES).comparisons[0]
    assert still.spread_ratio is None


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from([-0.2, -0.1, 0.0, 0.1, 0.3]), min_size=2, max_size=8))
def test_the_permutation_test_is_exact_for_few_pairs(differences: list[float]) -> None:
    """Statistics, permutation p: the share of all exchanges within pairs that are as extreme, counted one by one."""
    observed = abs(sum(differences))
    signs = list(product((1, -1), repeat=len(differences)))
    extreme = sum(abs(sum(s * d for s, d in zip(sign, differences, strict=True))) >= observed - 1e-9 for sign in signs)
    assert permutation_p([differences], seed=1) == pytest.approx(extreme / len(signs))


def test_p_values_are_reported_and_not_used() -> None:
    """Statistics: a drop that is certain (p below 0.01, after Holm) and within maxDrop passes all the same."""
    steady = [0.80, 0.82, 0.81, 0.79] * 20
    scores = {"s": [score - 0.01 - 0.002 * (index % 2) for index, score in enumerate(steady)]}
    settlement = settle(run_of(scores, {"s": steady}), RULES)
    (comparison,) = settlement.comparisons
    assert comparison.p is not None
    assert comparison.p < 0.01
    assert (settlement.verdict, settlement.reason) == (Judgement.PASS, Reason.WITHIN_MAX_DROP)


def test_p_values_are_corrected_for_their_number() -> None:
    """Statistics, Holm: the same candidate beside more candidates has a larger p."""
    worse = [0.1, 0.3, 0.2, 0.4, 0.2, 0.1]
    alone = run_of({"s": worse}, {"s": [0.5, 0.4, 0.6, 0.5, 0.3, 0.6]})
    more = alone + graded("s", "other", [0.5, 0.4, 0.6, 0.5, 0.4, 0.6]) + controls(["s"], ["other"])
    (one,) = settle(alone, RULES).comparisons
    two = {each.candidate.server: each for each in settle(more, RULES).comparisons}
    assert one.p is not None
    assert two[CAND].p == pytest.approx(2 * one.p)


def test_the_clustered_interval_is_reported_and_not_used() -> None:
    """Statistics: scenarios that differ in their difference widen the clustered interval, and it has no say."""
    steady = [0.50, 0.52, 0.51, 0.49] * 12
    base = dict.fromkeys("abc", steady)
    cand = {name: [score + shift for score in steady] for name, shift in zip("abc", (0.0, 0.2, 0.4), strict=True)}
    cand["a"] = [score + 0.002 * (index % 2) for index, score in enumerate(cand["a"])]
    settlement = settle(run_of(cand, base), RULES)
    (comparison,) = settlement.comparisons
    assert comparison.clustered is not None
    assert comparison.clustered[0] < -0.05
    assert settlement.verdict is Judgement.PASS


def test_a_time_limit_is_an_outcome_of_a_graded_cell() -> None:
    """P29, statistics: fates add up to all cells; how attempts ended is a histogram beside, and costs no cell."""
    cells = graded("s", CAND, [0.0, 0.8, 0.9])
    cells[0] = replace(cells[0], outcome=Outcome.TIME_LIMIT)
    cells += [lost(CellKey("s", CAND, "m", at), fate) for at, fate in enumerate(list(CellFate)[1:], start=4)]
    settlement = settle([*controls(["s"], [CAND]), *cells], GateRules(minimum=0.1, max_infra_percent=100))
    (arm,) = settlement.arms
    assert arm.fates == Counter({CellFate.GRADED: 3} | dict.fromkeys(list(CellFate)[1:], 1))
    assert sum(arm.fates.values()) == len(cells)
    assert arm.outcomes == {Outcome.TIME_LIMIT: 1, Outcome.COMPLETED: 2}
    assert arm.score is not None
    assert arm.score.count == 3


@pytest.mark.parametrize(("scenarios", "replicates", "deviation"), [(4, 22, 0.1), (2, 12, 0.05)])
def test_the_detectable_difference_is_found_in_four_of_five_runs(
    scenarios: int, replicates: int, deviation: float
) -> None:
    """P31, minimum detectable difference: 2,000 runs with a true drop of just that size; 80 % of them tell it from
    none, give or take the estimate of the spread."""
    random = np.random.default_rng(4)
    chance, shape = NormalScores(deviation), (1, replicates)
    strata = [(chance.draw(random, shape, 0.0) - chance.draw(random, shape, 0.0))[0].tolist() for _ in range(scenarios)]
    delta = estimate_mean(strata, DIFFERENCE, seed=1)
    true = deviation * np.sqrt(2 / (scenarios * replicates))
    drop = (Shape.of(strata, replace(delta, error=float(true), low=delta.mean))).detectable()
    assert simulate(chance, Size(scenarios, replicates), drop=drop, max_drop=0.0).failed == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize("shift", [0.0, 0.02, -0.12])
def test_the_replicates_that_would_settle_it_do(shift: float) -> None:
    """P31, replicates that would settle: the same scores so often over are settled, and half as often are not."""
    base = [0.9, 0.7, 0.8, 0.6, 0.9, 0.7]
    cand = [score + shift + (0.06 if index % 2 else -0.06) for index, score in enumerate(reversed(base))]
    (comparison,) = settle(run_of({"s": cand}, {"s": base}), RULES).comparisons
    needed = comparison.replicates_needed
    assert needed is not None
    times = -(-needed // len(base))
    enough = settle(run_of({"s": cand * times}, {"s": base * times}), RULES)
    half = times // 2
    assert enough.verdict is not Judgement.INCONCLUSIVE
    assert settle(run_of({"s": cand * half}, {"s": base * half}), RULES).verdict is Judgement.INCONCLUSIVE


def test_tokens_are_summed_and_one_unknown_price_makes_no_total() -> None:
    """Statistics: tokens and USD per arm and scenario; unknown ⇒ none, never 0, whichever cell it is of."""
    cells = [replace(each, usd=Decimal("0.25")) for each in graded("s", CAND, [0.8, 0.9, 1.0])]
    cells += graded("t", CAND, [0.8, 0.9, 1.0])
    settlement = settle([*controls(["s", "t"], [CAND]), *cells], GateRules(minimum=0.1))
    assert [(each.scenario, each.usd, each.tokens) for each in settlement.by_scenario] == [
        ("s", Decimal("0.75"), 3000),
        ("t", None, 3000),
    ]
    assert settlement.arms[0].usd is None
