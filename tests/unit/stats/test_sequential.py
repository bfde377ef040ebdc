"""Looks: when they come, and that together they err no more than one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.core.stats.quantiles import NORMAL, ONE_SIDE
from proctor.core.stats.sequential import MOST_LOOKS, SPENT, plan_looks, tails_of


@given(st.integers(1, 200), st.integers(0, 199))
def test_looks_grow_from_the_first_to_the_most(first: int, more: int) -> None:
    """Adaptive: the schedule follows from the suite alone; blocks are as equal as can be, and few."""
    looks = plan_looks(first, first + more)
    assert (looks[0], looks[-1]) == (first, first + more)
    assert len(looks) <= MOST_LOOKS
    blocks = np.diff(looks)
    assert (blocks > 0).all()
    assert not len(blocks) or blocks.max() - blocks.min() <= 1


@pytest.mark.parametrize(
    "looks", [(5, 7, 9, 11, 12), (3, 4, 5, 6), (10, 15, 20, 25, 30), (199, 200), (3, 53, 102, 151, 200)]
)
def test_all_looks_together_miss_as_seldom_as_they_may(looks: tuple[int, ...]) -> None:
    """Adaptive, always-valid bound: 400,000 random walks cross the bounds of any look as often as is spent."""
    shares = np.array(looks) / looks[-1]
    random = np.random.default_rng(2)
    steps = random.normal(size=(400_000, len(looks))) * np.sqrt(np.diff(shares, prepend=0.0))
    walks = steps.cumsum(axis=1) / np.sqrt(shares)
    bounds = np.array([-NORMAL.inv_cdf(tail) for tail in tails_of(looks)])
    assert float((walks > bounds).any(axis=1).mean()) == pytest.approx(SPENT, abs=0.0008)


@settings(deadline=None, max_examples=15)
@given(st.integers(1, 40), st.integers(1, 160))
def test_no_look_is_as_easy_as_a_single_one(first: int, more: int) -> None:
    """Adaptive: every look is held to more than a run of a fixed size, the early ones to much more."""
    tails = tails_of(plan_looks(first, first + more))
    assert all(0 < tail < ONE_SIDE for tail in tails)
    assert sum(tails) >= SPENT - 1e-6  # never stricter than needed: looks depend on each other


def test_a_single_look_is_the_usual_interval() -> None:
    """Adaptive: a run that may not grow is judged as one of a fixed size."""
    assert plan_looks(5, 5) == (5,)
    assert tails_of((5,)) == (ONE_SIDE,)
