"""Intervals of a mean over fixed scenarios, and a permutation test of paired differences.

The suite's scenarios are fixed, not drawn from many: resampling happens within each scenario, and each scenario weighs
the same however many of its cells were lost. How an interval is made is in `batches`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from proctor.core.stats.observations import TINY, Bounds, Interval
from proctor.core.stats.quantiles import ONE_SIDE

if TYPE_CHECKING:
    from proctor.core.stats.batches import Batch

RESAMPLES = 4000
EXACT_PAIRS = 12
"""Up to 2^12 sign patterns are all tried; beyond, as many are drawn."""

Strata = Sequence[Sequence[float]]
"""Values by scenario; none empty."""


def estimate_mean(
    strata: Strata, bounds: Bounds, *, seed: int, scripted: bool = False, tail: float = ONE_SIDE
) -> Interval:
    """Return the mean of the scenarios' means with its interval.

    Args:
        strata: values by scenario; at least one scenario.
        bounds: what is possible.
        seed: fixes resampling, so that the same scores always give the same interval.
        scripted: no model that is asked has any chance in it, so values that do not vary are exact. Otherwise values
            that happen not to vary say little about what others would be.
        tail: chance to miss on one side.
    """
    means = [math.fsum(values) / len(values) for values in strata]
    mean = math.fsum(means) / len(means)
    count = sum(len(values) for values in strata)
    if any(len(values) < 2 for values in strata):  # noqa: PLR2004 - one value says nothing about spread
        return Interval(mean, bounds.low, bounds.high, count, sized=False)
    if scripted and all(max(values) - min(values) < TINY for values in strata):
        return Interval(mean, mean, mean, count, deterministic=True)
    batch = _estimate_one(strata, bounds, seed=seed, tail=tail)
    return Interval(
        mean,
        min(float(batch.low[0]), mean),
        max(float(batch.high[0]), mean),
        count,
        error=float(batch.error[0]),
        degrees=int(batch.degrees[0]),
    )


def _estimate_one(strata: Strata, bounds: Bounds, *, seed: int, honest: bool = True, tail: float = ONE_SIDE) -> Batch:
    # Commands that compute no statistics needn't load numpy.
    import numpy as np

    from proctor.core.stats.batches import estimate_batch

    rows = [np.asarray([values], dtype=np.float64) for values in strata]
    return estimate_batch(rows, bounds, resamples=RESAMPLES, seed=seed, honest=honest, tail=tail)


def unsize(interval: Interval, bounds: Bounds) -> Interval:
    """Widen an interval to all that is possible: a whole scenario is missing from it, so nothing smaller is known."""
    return replace(interval, low=bounds.low, high=bounds.high, deterministic=False, sized=False)


def pooled_deviation(strata: Strata) -> float | None:
    """Return the standard deviation within scenarios; None where no scenario has two values."""
    sized = [values for values in strata if len(values) > 1]
    if not sized:
        return None
    squares = math.fsum(_variance(values) * (len(values) - 1) for values in sized)
    return math.sqrt(squares / sum(len(values) - 1 for values in sized))


def cluster_interval(strata: Strata, bounds: Bounds, *, seed: int) -> tuple[float, float] | None:
    """Return the interval as if scenarios were drawn from many; None with fewer than two."""
    if len(strata) < 2:  # noqa: PLR2004 - one cluster says nothing about clusters
        return None
    means = [[math.fsum(values) / len(values) for values in strata]]
    batch = _estimate_one(means, bounds, seed=seed, honest=False)
    return float(batch.low[0]), float(batch.high[0])


def permutation_p(strata: Strata, *, seed: int) -> float:
    """Return the two-sided p-value of paired differences under random exchange within each pair."""
    import numpy as np

    weighted = np.array([value / len(values) for values in strata for value in values])
    observed = abs(float(weighted.sum()))
    if len(weighted) <= EXACT_PAIRS:
        patterns = np.arange(2 ** len(weighted))[:, None] >> np.arange(len(weighted))[None, :]
        sums = np.abs((1 - 2 * (patterns & 1)) @ weighted)
        return float(np.mean(sums >= observed - TINY))
    draw = np.random.default_rng(seed)
    signs = 1 - 2 * draw.integers(0, 2, size=(RESAMPLES, len(weighted)))
    extreme = int(np.sum(np.abs(signs @ weighted) >= observed - TINY))
    # The observed pattern is one of the possible ones, so p is never 0.
    return (extreme + 1) / (RESAMPLES + 1)


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
