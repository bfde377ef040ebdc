"""The language of alert rules: closed, bounded, and never part of a query but as a quoted literal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from proctor.core.grading.alert_rules import MAX_MINUTES, RulesSubmission, make_series, read_series
from support.alert_rules import make_rule, rule_of


@pytest.mark.parametrize(
    "parts",
    [
        {"threshold": "10"},
        {"threshold": True},
        {"threshold": 1e300},
        {"threshold": None},
        {"window": "0m"},
        {"window": "25h"},
        {"window": "999999h"},
        {"window": "1d"},
        {"window": "-5m"},
        {"window": 5},
        {"for": "100000m"},
        {"metric": ""},
        {"metric": "load' OR 1=1 --"},
        {"metric": "m" * 121},
        {"service": "a b"},
        {"attributes": {"a' = '": "x"}},
        {"attributes": {"a": "x\n"}},
        {"attributes": {"a": "x" * 201}},
        {"attributes": {str(at): "x" for at in range(6)}},
        {"comparison": ">"},
        {"aggregation": "median"},
        {"sql": "SELECT 1"},
        {"quiet_in_planned_work": "yes"},
    ],
)
def test_what_is_no_rule_is_refused(parts: dict[str, Any]) -> None:
    """Hostile input: a rule has these fields within these bounds, and no others."""
    with pytest.raises(ValidationError):
        make_rule(**parts)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_no_threshold_is_no_number(number: str) -> None:
    """Hostile input: JSON as lenient parsers read it."""
    text = json.dumps(rule_of()).replace("10", number)
    with pytest.raises(ValidationError):
        RulesSubmission.model_validate_json(f'{{"rules": [{text}]}}')


def test_a_query_has_one_shape() -> None:
    """Hostile input: whatever an attribute holds stays within its quotes."""
    hostile = "') UNION ALL SELECT 1, name FROM system.users -- \\' {p:String}"
    query = make_rule(service="hub", attributes={"route": hostile}).selector.query
    plain = make_rule(service="hub", attributes={"route": "plain"}).selector.query
    quoted = "\\') UNION ALL SELECT 1, name FROM system.users -- \\\\\\' {p:String}"
    assert query == plain.replace("plain", quoted)


def test_rules_that_watch_the_same_ask_once() -> None:
    """A selector is what the points have in common: not the threshold, nor the order of attributes."""
    one = make_rule(attributes={"a": "1", "b": "2"}, threshold=1).selector
    assert one == make_rule(attributes={"b": "2", "a": "1"}, threshold=2, name="other").selector
    assert one != make_rule(attributes={"a": "1"}).selector


def test_series_are_read_in_any_order() -> None:
    """Rows of a query come as they come."""
    series = read_series("12,2,6.5,3,3.5;10,1,1,1,1")
    assert series is not None
    assert (series.first, series.points, series.totals) == (10, (1, 0, 2), (1.0, 0.0, 6.5))
    assert read_series("") is None


def test_series_without_end_are_none() -> None:
    """Two points, centuries apart, are no reason to count the minutes between them."""
    assert make_series([(0, 1, 1.0, 1.0, 1.0), (MAX_MINUTES, 1, 1.0, 1.0, 1.0)]) is None
