"""The interval itself, for many runs of one shape at a time: a run has one, a simulation thousands.

Four parts, each against an error that was measured (docs/statistics.md):

* Student's t with Welch's degrees of freedom: scenarios differ in spread, and a scenario that does not vary is no
  evidence of how the others do.
* A bias-corrected bootstrap within scenarios (BCa, with levels expanded for few values, as Hesterberg does). No
  resample reaches beyond the observed values, so the wider of the two counts.
* Scenarios that do not vary have shown nothing of their spread: the rule of three bounds what they may have hidden.
* What is rare is seldom among few cells: the lower end allows for the worst that all cells together may have missed.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proctor.core.stats.observations import TINY, Bounds
from proctor.core.stats.quantiles import NORMAL, ONE_SIDE, UNSEEN, student_t, unseen_share

Floats = NDArray[np.float64]


_MOST_DEGREES = 200


@dataclass(frozen=True, slots=True)
class Batch:
    """Means over scenarios and their intervals, one per run.

    Attributes:
        error: standard error; 0 where nothing varies.
        degrees: Welch's degrees of freedom, rounded down; 0 where nothing varies.
        constant: no scenario varies.
    """

    mean: Floats
    low: Floats
    high: Floats
    error: Floats
    degrees: NDArray[np.int64]
    constant: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Moments:
    """Per run (row) and scenario (column)."""

    sizes: NDArray[np.int64]
    means: Floats
    variances: Floats
    constant: NDArray[np.bool_]

    @property
    def error(self) -> Floats:
        return np.asarray(np.sqrt((self.variances / self.sizes).sum(axis=1)) / len(self.sizes))

    @property
    def degrees(self) -> NDArray[np.int64]:
        shares = self.variances / self.sizes
        below = (shares**2 / (self.sizes - 1)).sum(axis=1)
        degrees = np.divide(shares.sum(axis=1) ** 2, below, out=np.zeros_like(below), where=below > 0)
        # Rounding in binary must not take a whole degree away.
        return np.asarray(np.floor(degrees * (1 + TINY)).astype(np.int64))


def estimate_batch(
    strata: Sequence[Floats],
    bounds: Bounds,
    *,
    resamples: int,
    seed: int,
    honest: bool = True,
    tail: float = ONE_SIDE,
) -> Batch:
    """Return the mean of the scenarios' means and its interval, for each run.

    Args:
        strata: per scenario, values by run (row) and replicate (column), at least two columns.
        bounds: what is possible.
        resamples: of the bootstrap.
        seed: fixes resampling; all runs share its draws, which changes nothing for any one of them.
        honest: allow for what few cells may not have shown; False for figures that are reported, not used.
        tail: chance to miss on one side.
    """
    moments = _measure(strata)
    mean = moments.means.mean(axis=1)
    low, high = _varying_ends(strata, moments, resamples=resamples, seed=seed, tail=tail)
    if honest:
        low, high = _allow_for_constant((mean, low, high), moments=moments, bounds=bounds, tail=tail)
        unseen = unseen_share(moments.sizes.tolist(), UNSEEN)
        low = np.minimum(low, mean - unseen * (mean - bounds.low))
    return Batch(
        mean=mean,
        low=np.maximum(np.minimum(low, mean), bounds.low),
        high=np.minimum(np.maximum(high, mean), bounds.high),
        error=moments.error,
        degrees=moments.degrees,
        constant=np.asarray(moments.constant.all(axis=1)),
    )


def _measure(strata: Sequence[Floats]) -> _Moments:
    constant = np.stack([np.ptp(values, axis=1) < TINY for values in strata], axis=1)
    variances = np.stack([values.var(axis=1, ddof=1) for values in strata], axis=1)
    return _Moments(
        sizes=np.array([values.shape[1] for values in strata]),
        means=np.stack([values.mean(axis=1) for values in strata], axis=1),
        variances=np.where(constant, 0.0, variances),
        constant=constant,
    )


def _varying_ends(
    strata: Sequence[Floats], moments: _Moments, *, resamples: int, seed: int, tail: float
) -> tuple[Floats, Floats]:
    mean, error = moments.means.mean(axis=1), moments.error
    varies = error > 0
    student = np.where(varies, _student(moments.degrees, tail), 0.0)
    low, high = mean - student * error, mean + student * error
    if varies.any():
        chosen = [values[varies] for values in strata]
        ends = _bca(chosen, mean[varies], (student * error)[varies], resamples=resamples, seed=seed)
        low[varies] = np.minimum(low[varies], ends[0])
        high[varies] = np.maximum(high[varies], ends[1])
    return low, high


def _student(degrees: NDArray[np.int64], tail: float) -> Floats:
    distinct, which = np.unique(np.clip(degrees, 1, _MOST_DEGREES), return_inverse=True)
    return np.array([student_t(each, tail) for each in distinct.tolist()])[which.reshape(-1)]


def _allow_for_constant(
    interval: tuple[Floats, Floats, Floats], *, moments: _Moments, bounds: Bounds, tail: float
) -> tuple[Floats, Floats]:
    """Add what constant scenarios may hide to what the others show, as independent parts add (Zou and Donner)."""
    mean, low, high = interval
    below, above = np.zeros_like(mean), np.zeros_like(mean)
    # Runs are alike in which scenarios vary far more often than not, so each such pattern is looked at once.
    patterns, which = np.unique(moments.constant, axis=0, return_inverse=True)
    for index, pattern in enumerate(patterns):
        if not pattern.any():
            continue
        runs = which.reshape(-1) == index
        hidden = unseen_share(moments.sizes[pattern].tolist(), tail) * float(pattern.mean())
        level = moments.means[np.ix_(runs, pattern)].mean(axis=1)
        below[runs] = hidden * (level - bounds.low)
        above[runs] = hidden * (bounds.high - level)
    return mean - np.hypot(mean - low, below), mean + np.hypot(high - mean, above)


def _bca(strata: Sequence[Floats], mean: Floats, reach: Floats, *, resamples: int, seed: int) -> tuple[Floats, Floats]:
    resampled = _resample(strata, resamples, seed)
    centre = mean[:, None]
    below = (resampled < centre - TINY).mean(axis=1) + 0.5 * (np.abs(resampled - centre) <= TINY).mean(axis=1)
    # A share of 0 or 1 has no finite quantile; half a resample from the edge is the most that can be known.
    edge = 0.5 / resamples
    bias = np.array([NORMAL.inv_cdf(share) for share in np.clip(below, edge, 1 - edge).tolist()])
    influences = [(values - values.mean(axis=1, keepdims=True)) / (len(strata) * values.shape[1]) for values in strata]
    squares = np.sum([(each**2).sum(axis=1) for each in influences], axis=0)
    skew = np.sum([(each**3).sum(axis=1) for each in influences], axis=0) / (6 * squares**1.5)
    # The plug-in error is what the resamples have; the unbiased one, with Student's quantile, is what the mean has.
    expanded = reach / np.sqrt(squares)
    ordered = np.sort(resampled, axis=1)
    return _quantile(ordered, _level(bias, skew, -expanded)), _quantile(ordered, _level(bias, skew, expanded))


def _resample(strata: Sequence[Floats], resamples: int, seed: int) -> Floats:
    total = np.zeros((strata[0].shape[0], resamples))
    sizes = tuple(values.shape[1] for values in strata)
    for values, size, counts in zip(strata, sizes, _draw(sizes, resamples, seed), strict=True):
        total += values @ (counts.T / size)
    return total / len(strata)


@functools.lru_cache(maxsize=2)
def _draw(sizes: tuple[int, ...], resamples: int, seed: int) -> tuple[NDArray[np.uint16], ...]:
    """Return how often each value is in each resample, by scenario: the same for all arms of one shape."""
    draw = np.random.default_rng(seed)
    rows = np.arange(resamples)[:, None]
    drawn = []
    for size in sizes:
        places = draw.integers(0, size, size=(resamples, size)) + rows * size
        counts = np.bincount(places.reshape(-1), minlength=resamples * size).reshape(resamples, size)
        drawn.append(counts.astype(np.uint16))
    return tuple(drawn)


def _level(bias: Floats, skew: Floats, z: Floats) -> Floats:
    shifted = bias + z
    scale = 1 - skew * shifted
    # Where the correction has left its range, the far end is the honest answer.
    far = np.where(z < 0, -np.inf, np.inf)
    points = np.where(scale > 0, bias + shifted / np.where(scale > 0, scale, 1.0), far)
    return np.array([NORMAL.cdf(point) for point in points.tolist()])


def _quantile(ordered: Floats, level: Floats) -> Floats:
    position = level * (ordered.shape[1] - 1)
    below = np.minimum(position.astype(np.int64), ordered.shape[1] - 2)
    rows = np.arange(ordered.shape[0])
    left, right = ordered[rows, below], ordered[rows, below + 1]
    return np.asarray(left + (position - below) * (right - left))
