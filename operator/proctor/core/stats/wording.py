"""The one sentence that says why, for people: short enough for a column, exact enough to act on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from proctor.core.stats.observations import ArmFigures, CellFate, Comparison, Interval, Observation


def describe_arm(arm: ArmFigures) -> str:
    """Describe an arm's score, as in ``clickscope × newest 0.78 [0.74, 0.82]``."""
    return f"{arm.arm} {describe_interval(arm.score)}"


def describe_comparison(comparison: Comparison) -> str:
    """Describe a comparison, as in ``candidate × opus 0.78 [0.74, 0.82] vs 0.76: Δ +0.02 [−0.01, +0.05], 60 pairs``."""
    score = describe_interval(comparison.candidate_score)
    baseline = "–" if comparison.baseline_score is None else f"{comparison.baseline_score.mean:.2f}"
    pairs = f"{comparison.pairs} pair{'' if comparison.pairs == 1 else 's'}"
    exact = ", deterministic" if comparison.delta is not None and comparison.delta.deterministic else ""
    return f"{comparison.candidate} {score} vs {baseline}: Δ {describe_difference(comparison.delta)}, {pairs}{exact}"


def describe_interval(interval: Interval | None) -> str:
    """Describe a score with its interval; without the interval where nothing varies, ``–`` without a score."""
    if interval is None:
        return "–"
    if not interval.sized:
        return f"{interval.mean:.2f} [?]"
    if interval.deterministic:
        return f"{interval.mean:.2f}"
    return f"{interval.mean:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def describe_difference(interval: Interval | None) -> str:
    """Describe a signed difference as `describe_interval` does a score."""
    if interval is None:
        return "–"
    if not interval.sized:
        return f"{signed(interval.mean)} [?]"
    if interval.deterministic:
        return signed(interval.mean)
    return f"{signed(interval.mean)} {describe_bounds(interval.low, interval.high)}"


def describe_bounds(low: float, high: float) -> str:
    """Describe the ends of a signed interval."""
    return f"[{signed(low)}, {signed(high)}]"


def signed(value: float) -> str:
    """Render a difference with its sign; a rounded zero has none."""
    text = f"{abs(value):.2f}"
    if float(text) == 0:
        return "0.00"
    return f"{'+' if value > 0 else '−'}{text}"


def describe_losses(observations: Sequence[Observation]) -> str:
    """Describe the cells that no score is of, as in ``; 1 of 152 infra``; empty where none were lost."""
    fates = Counter(each.fate for each in observations)
    words = ((CellFate.INFRA_ERRORED, "infra"), (CellFate.UNGRADED, "ungraded"), (CellFate.CANCELLED, "cancelled"))
    parts = [f"{fates[fate]} {word}" for fate, word in words if fates[fate]]
    if not parts:
        return ""
    first, *rest = parts
    count, word = first.split(" ", 1)
    return "; " + ", ".join([f"{count} of {len(observations)} {word}", *rest])
