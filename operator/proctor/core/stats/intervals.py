"""Bias-corrected bootstrap intervals of a mean over fixed scenarios, and a permutation test of paired differences.

The suite's scenarios are fixed, not drawn from many, so resampling happens within each scenario, and each scenario
weighs the same however many of its cells were lost.

Two corrections make the interval honest at the sizes that people can pay for (3 to 12 replicates). The plain bootstrap
underestimates the variance of n values by (n - 1)/n and uses the normal's quantiles where Student's are due; both are
put into the BCa levels (Hesterberg's expanded percentiles). And since no resample reaches beyond the observed values,
the interval is never narrower than Student's below `SMALL` degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from proctor.core.stats.observations import Interval
from proctor.core.stats.quantiles import NORMAL, student_t

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

RESAMPLES = 4000
SMALL = 20
EXACT_PAIRS = 12
"""Up to 2^12 sign patterns are all tried; beyond, as many are drawn."""

Strata = Sequence[Sequence[float]]
"""Values by scenario; none empty."""

_TINY = 1e-9
"""Scores have at most a few decimals; differences below this come from adding in binary."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is possible at all: no interval reaches beyond."""

    low: float
    high: float


SCORE = Bounds(0.0, 1.0)
DIFFERENCE = Bounds(-1.0, 1.0)


def estimate_mean(strata: Strata, bounds: Bounds, *, seed: int) -> Interval:
    """Return the mean of the scenarios' means with its interval.

    Args:
        strata: values by scenario; at least one scenario.
        bounds: what is possible.
        seed: fixes resampling, so that the same scores always give the same interval.
    """
    means = [math.fsum(values) / len(values) for values in strata]
    mean = math.fsum(means) / len(means)
    count = sum(len(values) for values in strata)
    if any(len(values) < 2 for values in strata):  # noqa: PLR2004 - one value says nothing about spread
        return Interval(mean, bounds.low, bounds.high, count, sized=False)
    if all(max(values) - min(values) < _TINY for values in strata):
        return Interval(mean, mean, mean, count, deterministic=True)
    error = standard_error(strata)
    low, high = _bca(strata, mean, error, seed)
    degrees = count - len(strata)
    if degrees < SMALL:
        reach = student_t(degrees) * error
        low, high = min(low, mean - reach), max(high, mean + reach)
    return Interval(mean, max(low, bounds.low), min(high, bounds.high), count, error=error)


def unsize(interval: Interval, bounds: Bounds) -> Interval:
    """Widen an interval to all that is possible: a whole scenario is missing from it, so nothing smaller is known."""
    return replace(interval, low=bounds.low, high=bounds.high, deterministic=False, sized=False)


def standard_error(strata: Strata) -> float:
    """Return the standard error of the mean of the scenarios' means."""
    variance = math.fsum(_variance(values) / len(values) for values in strata)
    return math.sqrt(variance) / len(strata)


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
    interval = estimate_mean(means, bounds, seed=seed)
    return interval.low, interval.high


def permutation_p(strata: Strata, *, seed: int) -> float:
    """Return the two-sided p-value of paired differences under random exchange within each pair."""
    import numpy as np

    weighted = np.array([value / len(values) for values in strata for value in values])
    observed = abs(float(weighted.sum()))
    if len(weighted) <= EXACT_PAIRS:
        patterns = np.arange(2 ** len(weighted))[:, None] >> np.arange(len(weighted))[None, :]
        sums = np.abs((1 - 2 * (patterns & 1)) @ weighted)
        return float(np.mean(sums >= observed - _TINY))
    draw = np.random.default_rng(seed)
    signs = 1 - 2 * draw.integers(0, 2, size=(RESAMPLES, len(weighted)))
    extreme = int(np.sum(np.abs(signs @ weighted) >= observed - _TINY))
    # The observed pattern is one of the possible ones, so p is never 0.
    return (extreme + 1) / (RESAMPLES + 1)


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _bca(strata: Strata, mean: float, error: float, seed: int) -> tuple[float, float]:
    import numpy as np

    resampled = _resample(strata, seed)
    below = float(np.mean(resampled < mean - _TINY)) + 0.5 * float(np.mean(np.abs(resampled - mean) <= _TINY))
    # A share of 0 or 1 has no finite quantile; half a resample from the edge is the most that can be known.
    edge = 0.5 / RESAMPLES
    bias = NORMAL.inv_cdf(min(max(below, edge), 1 - edge))
    influences = [
        (value - math.fsum(values) / len(values)) / (len(strata) * len(values)) for values in strata for value in values
    ]
    squares = math.fsum(value**2 for value in influences)
    skew = math.fsum(value**3 for value in influences) / (6 * squares**1.5)
    degrees = sum(len(values) - 1 for values in strata)
    # The plug-in error is what the resamples have; the unbiased one is what the mean has.
    reach = student_t(degrees) * error / math.sqrt(squares)
    low, high = (_level(bias, skew, side * reach) for side in (-1, 1))
    ends = np.quantile(resampled, [low, high])
    return float(ends[0]), float(ends[1])


def _resample(strata: Strata, seed: int) -> NDArray[float64]:
    import numpy as np

    draw = np.random.default_rng(seed)
    total = np.zeros(RESAMPLES)
    for values in strata:
        column = np.asarray(values, dtype=np.float64)
        total += column[draw.integers(0, len(column), size=(RESAMPLES, len(column)))].mean(axis=1)
    return total / len(strata)


def _level(bias: float, skew: float, z: float) -> float:
    shifted = bias + z
    scale = 1 - skew * shifted
    if scale <= 0:  # the correction has left its range; the far end is the honest answer
        return 0.0 if z < 0 else 1.0
    return NORMAL.cdf(bias + shifted / scale)
