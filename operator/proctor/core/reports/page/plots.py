"""Geometry of the drawings: where on a line a number is. The templates draw; nothing here is markup."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from proctor.core.stats.observations import TINY, Interval

WIDTH = 320
HEIGHT = 26
_MARGIN = 14
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)
_MOST_TICKS = 7
_LEAST_REACH = 0.1
"""Differences smaller than this are drawn on an axis that is at least so wide: noise must not look like news."""
_MOST_DOTS = 400


@dataclass(frozen=True, slots=True)
class Tick:
    """A line of the axis."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """What a drawing's width stands for.

    Attributes:
        limit: where the gate's limit is drawn, by its place; None if there is none or it lies outside.
        limit_label: the limit in words.
        zero: where no difference is; None on an axis of scores.
    """

    low: float
    high: float
    ticks: tuple[Tick, ...]
    limit: float | None = None
    limit_label: str = ""
    zero: float | None = None


@dataclass(frozen=True, slots=True)
class Bar:
    """An interval's places, and those of the single values behind it.

    Attributes:
        dots: where single values are; at most some hundred.
    """

    low: float
    mean: float
    high: float
    exact: bool
    sized: bool
    dots: tuple[float, ...] = ()


def score_axis(minimum: float | None) -> Axis:
    """Return the axis of scores, from 0 to 1."""
    axis = Axis(0.0, 1.0, ())
    ticks = tuple(Tick(place(axis, value), f"{value:g}") for value in (0, 0.25, 0.5, 0.75, 1))
    if minimum is None:
        return Axis(0.0, 1.0, ticks)
    return Axis(0.0, 1.0, ticks, place(axis, minimum), f"minimum {minimum:.2f}")


def difference_axis(intervals: Sequence[Interval], values: Sequence[float], max_drop: float | None) -> Axis:
    """Return an axis around no difference that holds all intervals, all single differences, and the limit."""
    ends = [abs(end) for each in intervals for end in (each.low, each.high)]
    farthest = 1.05 * max((*ends, *map(abs, values)), default=0.0)
    reach = min(1.0, max(_LEAST_REACH, 1.3 * (max_drop or 0.0), farthest))
    step = next((step for step in _STEPS if 2 * reach / step <= _MOST_TICKS), 0.5)
    bare = Axis(-reach, reach, ())
    count = math.floor(reach / step + TINY)
    ticks = tuple(Tick(place(bare, index * step), _signed(index * step)) for index in range(-count, count + 1))
    limit = None if max_drop is None else place(bare, -max_drop)
    label = "" if max_drop is None else f"limit −{max_drop:.2f}"
    return Axis(-reach, reach, ticks, limit, label, place(bare, 0.0))


def place(axis: Axis, value: float) -> float:
    """Return where a value is drawn; outside of the axis, at its end."""
    share = (min(max(value, axis.low), axis.high) - axis.low) / (axis.high - axis.low)
    return round(_MARGIN + share * (WIDTH - 2 * _MARGIN), 1)


def place_interval(axis: Axis, interval: Interval | None, values: Sequence[float] = ()) -> Bar | None:
    """Return where an interval and the values that it is of are drawn; None without one."""
    if interval is None:
        return None
    dots = sorted({place(axis, value) for value in values})[:_MOST_DOTS]
    return Bar(
        low=place(axis, interval.low),
        mean=place(axis, interval.mean),
        high=place(axis, interval.high),
        exact=interval.deterministic,
        sized=interval.sized,
        dots=tuple(dots),
    )


def _signed(value: float) -> str:
    text = f"{abs(value):g}"
    return text if text == "0" else f"{'+' if value > 0 else '−'}{text}"
