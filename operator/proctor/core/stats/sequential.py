"""Looks at a run that grows: when they come, and how sure each must be so that all together are as sure as one.

A run with adaptive replicates is looked at after each of its blocks, and stops once its verdict is settled. Looking
often is trying often: with plain 95 % intervals at each of five looks, one run in seven would be wrong. So every look
gets intervals of its own level, and the levels are such that the chance that *any* of them misses, on one side, stays
within the 2.5 % of a run that is looked at once: its error rates hold wherever the run stops. They are repeated
confidence intervals (Jennison and Turnbull, 1989) with an error-spending boundary (Lan and DeMets, 1983).

Why it holds. With as many cells in every scenario, the sums of paired differences at the looks have independent
increments whose variance grows with the replicates. So the standardised means are, to first order, a Brownian motion
seen at the shares of replicates. `tails_of` finds, look by look, the quantile that such a motion crosses for the first
time with the chance that the look may spend (the recursion of Armitage, McPherson and Rowe, 1969). By a share t of the
replicates 2 % of t^2 is spent (Kim and DeMets, 1987): fixed by the suite alone, before anything is seen. Student's
quantile is then taken at that tail (Jennison and Turnbull, 2000, section 3.8), as it is for one look. "To first order"
is where few, skewed scores differ from a Brownian motion; the half percent that is not spent is kept for that.

The allowance for what no cell has shown (`batches`) spends nothing: "none so far" at a look implies "none so far" at
each earlier one. So of all looks only the first that could err can, and it errs as seldom as if it were alone.

Betting and empirical-Bernstein confidence sequences may be looked at after every cell, and ask nothing of the scores
but their range. At a few dozen pairs that freedom costs several times the cells, so it is not bought here.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from proctor.core.stats.quantiles import NORMAL, ONE_SIDE

if TYPE_CHECKING:
    from proctor.core.stats.batches import Floats

MOST_LOOKS = 5
"""Each further look costs some certainty and saves fewer cells than the one before."""
SPENDING_POWER = 2.0
"""Little is spent early, so that a run which needs all its replicates is nearly as sure as one of a fixed size. With 1,
3 of 100 such runs more stay open; with 3, runs that plainly differ take a tenth more cells."""

SPENT = 0.02
"""Of the 2.5 % that a single look misses by, on one side. With all of it, 4 × 5 to 25 replicates of steady scores with
rare failures let 5.1 % of drops of the limit pass; with this, 4.7 %."""

_GRID = 400
_FAR = 8.0
"""Standard deviations below the mean at which nothing is left to count."""
_STEPS = 50


def plan_looks(first: int, most: int) -> tuple[int, ...]:
    """Return the replicates at which a run is looked at: the first, then blocks as equal as can be, up to the most."""
    steps = min(MOST_LOOKS - 1, most - first)
    return (first, *(first + math.ceil((most - first) * step / steps) for step in range(1, steps + 1)))


@lru_cache(maxsize=256)
def tails_of(looks: tuple[int, ...]) -> tuple[float, ...]:
    """Return the one-sided chance of missing that each look's interval has; of a single look, the usual one.

    Args:
        looks: replicates at each look, growing; the last is the most that there may be.
    """
    if len(looks) == 1:
        return (ONE_SIDE,)
    shares = [look / looks[-1] for look in looks]
    spent = [SPENT * share**SPENDING_POWER for share in shares]
    tails = [spent[0]]
    bound = -NORMAL.inv_cdf(spent[0])
    points, masses = _start(shares[0], bound)
    for before, share, earlier, now in zip(shares, shares[1:], spent, spent[1:], strict=False):
        spread = math.sqrt(share - before)
        bound = _find_bound(points, masses, share=share, spread=spread, chance=now - earlier)
        tails.append(NORMAL.cdf(-bound))
        points, masses = _advance(points, masses, top=bound * math.sqrt(share), share=share, spread=spread)
    return tuple(tails)


def _start(share: float, bound: float) -> tuple[Floats, Floats]:
    points = _grid(bound * math.sqrt(share), share)
    return points, _density(points, math.sqrt(share)) * _weights(points)


def _find_bound(points: Floats, masses: Floats, *, share: float, spread: float, chance: float) -> float:
    """Return the standardised value that is crossed at this look, and at none before, with a chance."""
    low, high = 0.0, _FAR
    for _ in range(_STEPS):
        middle = (low + high) / 2
        top = middle * math.sqrt(share)
        beyond = [NORMAL.cdf((point - top) / spread) for point in points.tolist()]
        if math.fsum(mass * tail for mass, tail in zip(masses.tolist(), beyond, strict=True)) > chance:
            low = middle
        else:
            high = middle
    return high


def _advance(points: Floats, masses: Floats, *, top: float, share: float, spread: float) -> tuple[Floats, Floats]:
    reached = _grid(top, share)
    density = _density(reached[:, None] - points[None, :], spread) @ masses
    return reached, density * _weights(reached)


def _grid(top: float, share: float) -> Floats:
    import numpy as np

    return np.linspace(-_FAR * math.sqrt(share), top, _GRID)


def _weights(points: Floats) -> Floats:
    import numpy as np

    weights = np.full(len(points), points[1] - points[0])
    weights[[0, -1]] /= 2
    return weights


def _density(values: Floats, spread: float) -> Floats:
    import numpy as np

    return np.asarray(np.exp(-((values / spread) ** 2) / 2) / (spread * math.sqrt(2 * math.pi)))
