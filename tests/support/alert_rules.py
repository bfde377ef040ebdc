"""Makers for tests of alert rules: series, rules, incidents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from proctor.core.grading.alert_firings import Stretch
from proctor.core.grading.alert_rules import Rule, Series, make_series
from proctor.core.grading.alerts import Window

BEGIN = 28_998_720
"""The first minute of every series here: midnight of 2025-02-19."""


def make_rule(**parts: Any) -> Rule:
    """Make a rule that fires at once above 10; parts replace its own."""
    return Rule.model_validate_json(json.dumps(rule_of(**parts)))


def rule_of(**parts: Any) -> dict[str, Any]:
    """Return a rule as an answer writes it."""
    whole = {
        "name": "busy",
        "metric": "load",
        "aggregation": "max",
        "window": "1m",
        "comparison": "above",
        "threshold": 10,
    }
    return whole | parts


def series_of(values: Sequence[float | None]) -> Series:
    """Make a series with a point each minute; None is a minute without one."""
    series = make_series((BEGIN + at, 1, one, one, one) for at, one in enumerate(values) if one is not None)
    assert series is not None
    return series


def plateau(minutes: int, *wrong: tuple[int, int], usual: float = 1.0, value: float = 20.0) -> Series:
    """Make a series that is as usual, but for some stretches."""
    return series_of([value if any(a <= at < b for a, b in wrong) else usual for at in range(minutes)])


def windows(**during: tuple[int, int]) -> list[Window]:
    """Make incidents, in minutes from the begin."""
    return [Window(name, Stretch(BEGIN + start, BEGIN + until)) for name, (start, until) in during.items()]


def submit(*rules: Mapping[str, Any], **lists: Sequence[str]) -> bytes:
    """Write an answer."""
    return json.dumps({"rules": list(rules), **lists}).encode()
