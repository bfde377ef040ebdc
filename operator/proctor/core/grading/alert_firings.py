"""When a rule fires: pure arithmetic over a series, linear in its minutes whatever window a rule has."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import assert_never

from proctor.core.grading.alert_rules import Aggregation, Comparison, Rule, Series, read_span


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of time in minutes counted from 1970; the end is not in it."""

    start: int
    until: int

    def holds(self, minute: int, *, after: int = 0) -> bool:
        """Tell whether a minute lies in it, or so many minutes after it."""
        return self.start <= minute < self.until + after


def find_firings(rule: Rule, series: Series, planned: Sequence[Stretch] = ()) -> list[Stretch]:
    """Return when a rule fires, in order; each firing begins with somebody being woken.

    Args:
        rule: the rule.
        series: what it watches.
        planned: when planned work goes on.
    """
    lasting, window = read_span(rule.lasting), read_span(rule.window)
    since: int | None = None
    firings: list[Stretch] = []
    for offset, value in enumerate(_look_back(series, rule.aggregation, window)):
        minute = series.first + offset
        # What was measured during the work stays in view for as long as the window is.
        quiet = rule.quiet_in_planned_work and any(work.holds(minute, after=window) for work in planned)
        if quiet or value is None or not _is_wrong(rule, value):
            since = None
            continue
        since = minute if since is None else since
        if minute - since >= lasting:
            if firings and firings[-1].until == minute:
                firings[-1] = Stretch(firings[-1].start, minute + 1)
            else:
                firings.append(Stretch(minute, minute + 1))
    return firings


def _is_wrong(rule: Rule, value: float) -> bool:
    match rule.comparison:
        case Comparison.ABOVE:
            return value > rule.threshold
        case Comparison.BELOW:
            return value < rule.threshold
    assert_never(rule.comparison)


def _look_back(series: Series, aggregation: Aggregation, window: int) -> Iterator[float | None]:
    """Yield, for each minute, what the window that ends with it holds; None where that is nothing."""
    match aggregation:
        case Aggregation.AVG | Aggregation.SUM:
            sums = _slide(series.totals, window)
            for total, points in zip(sums, _slide(series.points, window), strict=True):
                if points == 0:
                    yield None
                else:
                    yield total / points if aggregation is Aggregation.AVG else total
        case Aggregation.MIN:
            yield from _extremes(series.points, series.least, window, sign=1)
        case Aggregation.MAX:
            yield from _extremes(series.points, series.most, window, sign=-1)
        case _:
            assert_never(aggregation)


def _slide(values: Sequence[float], window: int) -> Iterator[float]:
    sums = [0, *accumulate(values)]
    return (sums[end] - sums[max(0, end - window)] for end in range(1, len(sums)))


def _extremes(points: Sequence[int], values: Sequence[float], window: int, *, sign: int) -> Iterator[float | None]:
    """Yield the smallest value of each window, or with the sign -1 the largest."""
    best: deque[tuple[int, float]] = deque()
    for place, (count, value) in enumerate(zip(points, values, strict=True)):
        if best and best[0][0] <= place - window:
            best.popleft()
        if count:
            while best and sign * best[-1][1] >= sign * value:
                best.pop()
            best.append((place, value))
        yield best[0][1] if best else None
