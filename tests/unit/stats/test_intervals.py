"""Intervals: what they cover, when they are a point, and that they are the same every time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.stats.intervals import (
    DIFFERENCE,
    SCORE,
    cluster_interval,
    estimate_mean,
    permutation_p,
    pooled_deviation,
)
from proctor.core.stats.quantiles import holm, student_t

SCORES = st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=8), min_size=1, max_size=4)


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
    interval = estimate_mean([[0.7] * 3, [0.2] * 3], SCORE, seed=1)
    assert (interval.low, interval.high, interval.deterministic) == (interval.mean, interval.mean, True)
    assert interval.mean == pytest.approx(0.45)


def test_one_value_says_nothing_about_spread() -> None:
    """Statistics: a single replicate is not "deterministic"."""
    interval = estimate_mean([[0.7], [0.2, 0.2]], SCORE, seed=1)
    assert (interval.low, interval.high, interval.sized, interval.deterministic) == (0, 1, False, False)


def test_scenarios_weigh_the_same_however_many_cells_were_lost() -> None:
    """Statistics: the suite's scenarios are fixed, not a sample."""
    assert estimate_mean([[1.0] * 9, [0.0] * 2], SCORE, seed=1).mean == pytest.approx(0.5)


def test_spread_between_scenarios_is_not_noise() -> None:
    """Statistics: resampled within scenarios, so that easy and hard ones do not widen the interval."""
    near = [[0.10, 0.12, 0.11, 0.09], [0.90, 0.92, 0.91, 0.89]]
    interval = estimate_mean(near, SCORE, seed=1)
    assert interval.high - interval.low < 0.05
    clustered = cluster_interval(near, SCORE, seed=1)
    assert clustered is not None
    assert clustered[1] - clustered[0] > 0.5
    assert cluster_interval(near[:1], SCORE, seed=1) is None


@pytest.mark.parametrize(("scenarios", "replicates"), [(1, 3), (1, 5), (4, 5), (2, 12)])
def test_intervals_cover_what_they_claim(scenarios: int, replicates: int) -> None:
    """P31: at least 93 of 100 intervals at 95 % hold the true mean (600 runs, sd 0.1), also with 3 replicates."""
    draw = np.random.default_rng(20261130)
    runs = 600
    covered = 0
    for run in range(runs):
        interval = estimate_mean(draw.normal(0.1, 0.1, (scenarios, replicates)).tolist(), DIFFERENCE, seed=run)
        covered += interval.low <= 0.1 <= interval.high
    assert covered / runs >= 0.93


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


def test_pooled_deviation() -> None:
    """Statistics: standard deviation within scenarios."""
    assert pooled_deviation([[0.0, 1.0], [5.0, 6.0]]) == pytest.approx(math.sqrt(0.5))
    assert pooled_deviation([[0.3]]) is None
