"""When a rule fires."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.core.grading.alert_firings import Stretch, find_firings
from proctor.core.grading.alert_rules import make_series
from support.alert_rules import BEGIN, make_rule, plateau, series_of

Minutes = list[tuple[int, int]]


def fire(values: list[float | None], **parts: Any) -> Minutes:
    found = find_firings(make_rule(**parts), series_of(values))
    return [(one.start - BEGIN, one.until - BEGIN) for one in found]


@pytest.mark.parametrize(
    ("values", "parts", "expect"),
    [
        ([1, 20, 20, 1, 20], {}, [(1, 3), (4, 5)]),
        ([10, 10], {}, []),
        ([1, 20, 1], {"for": "1m"}, []),
        ([1, 20, 20, 20, 1], {"for": "2m"}, [(3, 4)]),
        ([1, 20, 1, 20, 20], {"for": "1m"}, [(4, 5)]),
        ([20, 1, 1, 1], {"window": "3m"}, [(0, 3)]),
        ([20, 20, 1, 20, 20], {"window": "2m", "aggregation": "min"}, [(0, 2), (4, 5)]),
        ([4, 4, 40, 4], {"window": "2m", "aggregation": "avg", "threshold": 20}, [(2, 4)]),
        ([4, 4, 4, 4], {"window": "3m", "aggregation": "sum"}, [(2, 4)]),
        ([5, 1, 5], {"comparison": "below", "threshold": 2}, [(1, 2)]),
        ([20, None, 20], {"for": "1m"}, []),
        ([20, None, 20], {"window": "2m", "for": "1m"}, [(1, 3)]),
        ([20, 20], {"window": "90s", "for": "60s"}, [(1, 2)]),
    ],
)
def test_firings_of_made_series(values: list[float | None], parts: dict[str, Any], expect: Minutes) -> None:
    """Part 2: windows, aggregations, `for` and gaps, as people who write rules expect them."""
    assert fire(values, **parts) == expect


def test_a_quiet_rule_keeps_quiet_in_planned_work() -> None:
    """Planned work wakes nobody who was told of it, nor does what is still in the window after it."""
    series = plateau(100, (20, 40), (70, 80))
    planned = [Stretch(BEGIN + 20, BEGIN + 40)]
    for rule, expect in (
        (make_rule(), [20, 70]),
        (make_rule(quiet_in_planned_work=True), [70]),
        (make_rule(quiet_in_planned_work=True, window="10m"), [70]),
    ):
        assert [one.start - BEGIN for one in find_firings(rule, series, planned)] == expect


def test_several_points_of_a_minute_count_each() -> None:
    """Series that a rule does not tell apart are one: averages are of points, not of minutes."""
    series = make_series([(BEGIN, 3, 30.0, 2.0, 26.0), (BEGIN + 1, 1, 2.0, 2.0, 2.0)])
    assert series is not None
    found = {
        name: len(find_firings(make_rule(aggregation=name, window="2m", threshold=limit), series))
        for name, limit in (("avg", 7.9), ("max", 25), ("sum", 31), ("min", 2))
    }
    assert found == {"avg": 1, "max": 1, "sum": 1, "min": 0}


def test_a_giant_window_costs_no_more_than_a_small_one() -> None:
    """Hostile input: a day's window over weeks; each point is looked at twice, not 1,440 times."""
    series = plateau(100_000, (50_000, 50_010))
    for name in ("max", "avg"):
        (only,) = find_firings(make_rule(window="24h", aggregation=name, threshold=1.01), series)
        assert only.until - BEGIN == 50_010 + 1439
