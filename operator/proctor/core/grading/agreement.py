"""Agreement of a judge's votes: Krippendorff's alpha over the scores that criteria got (grading rule 6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_PAIR = 2


def measure_agreement(units: Iterable[Sequence[int]]) -> float | None:
    """Return Krippendorff's alpha with interval distances: 1 is full agreement, 0 is what chance gives.

    As in K. Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011): alpha = 1 - Do / De, the squared
    differences within units over those between all values; values that have none to be compared with are left out.

    Args:
        units: per judged criterion of an answer, the scores of all votes.

    Returns:
        None where nothing can be said: no unit has two votes, or all values are the same.
    """
    pairable = [unit for unit in units if len(unit) >= _PAIR]
    values = [value for unit in pairable for value in unit]
    # Both sums take each pair once; the definition takes it twice, above and below the line.
    between = _sum_squares(values)
    if between == 0:
        return None
    within = sum(_sum_squares(unit) / (len(unit) - 1) for unit in pairable)
    return 1 - (len(values) - 1) * within / between


def _sum_squares(values: Sequence[int]) -> int:
    """Sum of squared differences over all pairs of values, without visiting the pairs."""
    return len(values) * sum(value * value for value in values) - sum(values) ** 2
