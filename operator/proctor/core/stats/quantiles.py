"""The few quantiles and bounds that intervals need, without a statistics library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

NORMAL = NormalDist()
CONFIDENCE = 0.95
ONE_SIDE = (1 - CONFIDENCE) / 2
UNSEEN = 0.05
"""Chance that what the lower end does not allow for happened to be in no cell: a pass may be wrong this often."""
Z_POWER = NORMAL.inv_cdf(0.80)
"""A difference is called detectable when 80 of 100 runs would find it."""

_MOST_EXACT = 60
"""Degrees of freedom up to which Student's distribution is summed; beyond, the expansion is right to five decimals."""
_HALVINGS = 80


@lru_cache(maxsize=8192)
def student_t(degrees: int, tail: float = ONE_SIDE) -> float:
    """Return the value that Student's t exceeds with a chance.

    Args:
        degrees: degrees of freedom, at least 1.
        tail: the chance, above 0 and below one half.
    """
    if degrees > _MOST_EXACT:
        return _expand_t(degrees, -NORMAL.inv_cdf(tail))
    low, high = 0.0, 1.0
    while _student_tail(degrees, high) > tail:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _student_tail(degrees, middle) > tail:
            low = middle
        else:
            high = middle
    return high


def _student_tail(degrees: int, value: float) -> float:
    """Sum the distribution's finite series (Abramowitz & Stegun 26.7.3 and 26.7.4)."""
    angle = math.atan2(value, math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term = cosine if odd else 1.0
    total = term if degrees > 1 else 0.0
    for power in range(2 + odd, degrees, 2):
        term *= (power - 1) / power * cosine**2
        total += term
    inside = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return (1 - inside) / 2


def _expand_t(degrees: int, z: float) -> float:
    # Cornish-Fisher expansion in 1/degrees (Abramowitz & Stegun 26.7.5).
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3


def unseen_share(sizes: Sequence[int], chance: float) -> float:
    """Return the largest mean share, over scenarios, of what none of the cells showed.

    With n cells of one scenario it is the rule of three made exact: 1 − chance^(1/n). Over scenarios of any sizes the
    worst case is sought: the least mean of q where the product of q^n is the chance, which has q proportional to n.

    Args:
        sizes: cells per scenario.
        chance: that no cell shows it.
    """
    rest, budget, kept = sorted(sizes, reverse=True), math.log(chance), 0
    while rest:
        scale = math.exp((budget - sum(size * math.log(size) for size in rest)) / sum(rest))
        if scale * rest[0] <= 1:
            return 1 - (kept + scale * sum(rest)) / len(sizes)
        # The largest scenario can hide nothing at all in the worst case; what is hidden is in the others.
        kept += 1
        rest.pop(0)
    return 0.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number by Holm's step-down method, in the order given."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, p_values[index] * (len(p_values) - rank)))
        corrected[index] = largest
    return corrected
