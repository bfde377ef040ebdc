"""The few quantiles that intervals need, without a statistics library."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

NORMAL = NormalDist()
CONFIDENCE = 0.95
Z_TWO_SIDED = NORMAL.inv_cdf(0.5 + CONFIDENCE / 2)
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


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number by Holm's step-down method, in the order given."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, p_values[index] * (len(p_values) - rank)))
        corrected[index] = largest
    return corrected
