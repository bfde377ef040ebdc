"""Intervals: what they cover, when they are a point, and that they are the same every time."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.core.stats.intervals import (
    cluster_interval,
    estimate_mean,
    permutation_p,
    pooled_deviation,
)
from proctor.core.stats.observations import DIFFERENCE, SCORE
from proctor.core.stats.quantiles import holm, student_t, unseen_share

SCORES = st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=8), min_size=1, max_size=4)


@settings(deadline=None)  # the first example loads numpy
@given(SCORES, st.integers(0, 2**48))
def test_an_interval_holds_its_mean_within_what_is_possible(strata: list[list[float]], seed: int) -> None:
    """Statistics: no NaN, no division by zero, deterministic by seed, for any scores."""
    interval = estimate_mean(strata, SCORE, seed=seed)
    assert 0 <= interval.low <= interval.mean + 1e-9
    assert interval.mean - 1e-9 <= interval.high <= 1
    assert not any(math.isnan(value) for value in (interval.low, interval.mean, interval.high, interval.error))
    assert interval == estimate_mean(strata, SCORE, seed=seed)


def test_no_variance_makes_the_interval_a_point() -> None:
    """Statistics: zero variance is labelled deterministic."""
    interval = estimate_mean([[0.7] * 3, [0.2] * 3], SCORE, seed=1, scripted=True)
    assert (interval.low, interval.high, interval.deterministic) == (interval.mean, interval.mean, True)
    assert interval.mean == pytest.approx(0.45)


@pytest.mark.parametrize(("scenarios", "replicates"), [(1, 3), (1, 10), (4, 5)])
def test_a_real_model_that_happens_not_to_vary_is_not_exact(scenarios: int, replicates: int) -> None:
    """Statistics: the rule of three, made exact, instead of a point; at both ends, of scores and of differences."""
    values = [[0.8] * replicates] * scenarios
    interval = estimate_mean(values, SCORE, seed=1)
    hidden = 1 - 0.025 ** (1 / (scenarios * replicates))
    assert not interval.deterministic
    assert interval.low == pytest.approx(0.8 - hidden * 0.8)
    assert interval.high == pytest.approx(0.8 + hidden * 0.2)
    difference = estimate_mean([[0.0] * replicates] * scenarios, DIFFERENCE, seed=1)
    assert (difference.low, difference.high) == (pytest.approx(-hidden), pytest.approx(hidden))


def test_a_scenario_that_does_not_vary_does_not_lend_its_steadiness() -> None:
    """Statistics: Welch's degrees of freedom, and an allowance for what a constant scenario may hide."""
    noisy, steady = [0.5, 0.7, 0.9, 0.6], [1.0] * 4
    alone, beside = estimate_mean([noisy], SCORE, seed=1), estimate_mean([noisy, steady], SCORE, seed=1)
    assert (alone.degrees, beside.degrees) == (3, 3)
    assert beside.high < 1
    assert beside.mean - beside.low > (1 - 0.025 ** (1 / 4)) / 2


@given(st.lists(st.integers(1, 60), min_size=1, max_size=5), st.floats(0.01, 0.5))
def test_what_was_unseen_is_the_worst_case(sizes: list[int], chance: float) -> None:
    """Statistics: no other way to hide it from the same cells, with the same chance, hides more."""
    share = unseen_share(sizes, chance)
    assert 0 < share < 1
    everywhere = 1 - chance ** (1 / sum(sizes))
    in_one = (1 - chance ** (1 / min(sizes))) / len(sizes)
    assert share >= max(everywhere, in_one) - 1e-9


def test_unseen_share() -> None:
    """Statistics: 1 − chance^(1/n) of one scenario; equal scenarios hide as much as one of all their cells."""
    assert unseen_share([59], 0.05) == pytest.approx(0.05, abs=0.001)
    assert unseen_share([20, 20, 20], 0.05) == pytest.approx(unseen_share([60], 0.05))


def test_one_value_says_nothing_about_spread() -> None:
    """Statistics: a single replicate is not "deterministic"."""
    interval = estimate_mean([[0.7], [0.2, 0.2]], SCORE, seed=1)
    assert (interval.low, interval.high, interval.sized, interval.deterministic) == (0, 1, False, False)


def test_scenarios_weigh_the_same_however_many_cells_were_lost() -> None:
    """Statistics: the suite's scenarios are fixed, not a sample."""
    assert estimate_mean([[1.0] * 9, [0.0] * 2], SCORE, seed=1).mean == pytest.approx(0.5)


def test_spread_between_scenarios_is_not_noise() -> None:
    """Statistics: resampled within scenarios, so that easy and hard ones do not widen the interval."""
    near = [[0.10, 0.12, 0.11, 0.09] * 20, [0.90, 0.92, 0.91, 0.89] * 20]
    interval = estimate_mean(near, SCORE, seed=1)
    assert interval.high - interval.low < 0.05
    clustered = cluster_interval(near, SCORE, seed=1)
    assert clustered is not None
    assert clustered[1] - clustered[0] > 0.5
    assert cluster_interval(near[:1], SCORE, seed=1) is None


def test_skew_moves_the_interval() -> None:
    """Statistics: bias-corrected; a long tail to one side reaches further to that side than a plain interval."""
    values = [[1.0] * 20 + [0.9] * 6 + [0.2, 0.1]]
    interval = estimate_mean(values, SCORE, seed=3)
    assert interval.mean - interval.low > interval.high - interval.mean


def test_permutation_p() -> None:
    """Statistics: exact for few pairs, and never 0 for many."""
    assert permutation_p([[0.1] * 5], seed=1) == pytest.approx(2 / 32)
    assert permutation_p([[0.1, -0.1] * 3], seed=1) == 1
    assert 0 < permutation_p([[0.3] * 40], seed=1) < 0.001


def test_holm() -> None:
    """Statistics: p-values with Holm's correction, in the order given, never above 1."""
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(("degrees", "value"), [(1, 12.706), (2, 4.303), (13, 2.160), (30, 2.042), (100, 1.984)])
def test_student_t(degrees: int, value: float) -> None:
    """Statistics: tabulated quantiles to three decimals."""
    assert student_t(degrees) == pytest.approx(value, abs=6e-4)


@pytest.mark.parametrize(
    ("degrees", "tail", "value"), [(10, 0.0005, 4.587), (5, 0.0001, 9.678), (60, 0.005, 2.660), (120, 0.005, 2.617)]
)
def test_student_t_at_the_levels_of_looks(degrees: int, tail: float, value: float) -> None:
    """Adaptive: tabulated quantiles far out, where early looks are."""
    assert student_t(degrees, tail) == pytest.approx(value, abs=6e-4)


def test_pooled_deviation() -> None:
    """Statistics: standard deviation within scenarios."""
    assert pooled_deviation([[0.0, 1.0], [5.0, 6.0]]) == pytest.approx(math.sqrt(0.5))
    assert pooled_deviation([[0.3]]) is None
