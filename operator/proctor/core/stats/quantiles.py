"""The few quantiles and bounds that intervals need, without a statistics library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

NORMAL = NormalDist()
CONFIDENCE = 0.95
Z_TWO_SIDED = NORMAL.inv_cdf(0.5 + CONFIDENCE / 2)
ONE_SIDE = (1 - CONFIDENCE) / 2
UNSEEN = 0.05
"""Chance that what the lower end does not allow for happened to be in no cell: a pass may be wrong this often."""
Z_POWER = NORMAL.inv_cdf(0.80)
"""A difference is called detectable when 80 of 100 runs would find it."""

# Student's t at 0.975 for 1 to 12 degrees of freedom; beyond, the expansion below is right to three decimals.
_T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179)


def student_t(degrees: int) -> float:
    """Return Student's t at 0.975.

    Args:
        degrees: degrees of freedom, at least 1.
    """
    if degrees <= len(_T_975):
        return _T_975[degrees - 1]
    z = Z_TWO_SIDED
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
