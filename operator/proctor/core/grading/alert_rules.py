"""Alert rules as answers: their schema, and the queries that fetch what they watch.

A rule is data, not SQL. Its names reach a query of one shape as quoted literals: every rule costs the same, none looks
anything up, and none names a time, for a rule that knows when something was wrong would be no rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from proctor.core.grading.artifact_answer import AnswerPart
from proctor.core.seeding.sql import quote

MAX_RULES = 20
MAX_MINUTES = 100_000
"""Ten weeks: more than any world that is seeded, less than would hold a grader up."""

_LONGEST = 24 * 60
_SPAN = re.compile(r"(\d{1,6})(s|m|h)")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_MINUTE = 60


def read_span(text: str) -> int:
    """Return a span of time such as ``90s``, ``5m`` or ``1h`` in minutes, rounded up.

    Raises:
        ValueError: the text is none, or longer than a day.
    """
    found = _SPAN.fullmatch(text)
    if found is None:
        raise ValueError("write a whole number and one of s, m, h")
    minutes = -(-int(found[1]) * _SECONDS[found[2]] // _MINUTE)
    if minutes > _LONGEST:
        raise ValueError("it is longer than a day")
    return minutes


def _checked(text: str) -> str:
    read_span(text)
    return text


def _checked_window(text: str) -> str:
    if read_span(text) < 1:
        raise ValueError("it is empty")
    return text


_Span = Annotated[str, StringConstraints(max_length=10), AfterValidator(_checked)]
_Window = Annotated[str, StringConstraints(max_length=10), AfterValidator(_checked_window)]
_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:/-]{1,120}$")]
_Words = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{0,200}$")]
_Title = Annotated[str, StringConstraints(min_length=1, max_length=120)]
_Names = Annotated[list[_Title], Field(max_length=30)]


class Aggregation(StrEnum):
    """What is made of all points in a window."""

    AVG = "avg"
    MIN = "min"
    MAX = "max"
    SUM = "sum"


class Comparison(StrEnum):
    """On which side of the threshold something is wrong."""

    ABOVE = "above"
    BELOW = "below"


class Rule(AnswerPart):
    """When to wake somebody."""

    name: _Title = Field(description="What it is called.")
    service: _Name | None = Field(default=None, description="Only points of this service.")
    metric: _Name = Field(description="The name of a gauge or sum.")
    attributes: dict[_Name, _Words] = Field(default={}, max_length=5, description="Only points with these attributes.")
    aggregation: Aggregation = Field(description="What is made of all points in the window.")
    window: _Window = Field(description="The time before each minute that is looked at: 1m to 24h.")
    comparison: Comparison = Field(description="On which side of the threshold something is wrong.")
    threshold: float = Field(
        allow_inf_nan=False, ge=-1e15, le=1e15, strict=True, description="The limit itself is right."
    )
    lasting: _Span = Field(alias="for", default="0m", description="How long that must hold without a break.")
    quiet_in_planned_work: bool = Field(
        default=False, strict=True, description="Whether it keeps quiet while planned work goes on."
    )

    @property
    def selector(self) -> Selector:
        """The points that it watches."""
        return Selector(self.service, self.metric, tuple(sorted(self.attributes.items())))


class RulesSubmission(AnswerPart):
    """The whole answer."""

    noise: _Names = Field(default=[], description="Rules in force that fire though nothing is wrong.")
    threshold: _Names = Field(default=[], description="Rules in force that slept because their threshold is wrong.")
    missing: _Names = Field(default=[], description="Metrics that showed an incident and that no rule watches.")
    rules: list[Rule] = Field(max_length=MAX_RULES, description="All rules that should be in force.")


@dataclass(frozen=True, slots=True)
class Selector:
    """The points that a rule watches.

    Attributes:
        service: None for every service.
        metric: the metric's name.
        attributes: keys and values that a point must have.
    """

    service: str | None
    metric: str
    attributes: tuple[tuple[str, str], ...]

    @property
    def query(self) -> str:
        """One SELECT of one text: what each minute holds, see `read_series`."""
        wanted = [f"MetricName = {quote(self.metric)}"]
        wanted += [] if self.service is None else [f"ServiceName = {quote(self.service)}"]
        wanted += [f"Attributes[{quote(key)}] = {quote(value)}" for key, value in self.attributes]
        where = " AND ".join(wanted)
        points = " UNION ALL ".join(
            f"SELECT TimeUnix, Value FROM otel_metrics_{kind} WHERE {where}"  # noqa: S608 - literals are quoted
            for kind in ("gauge", "sum")
        )
        parts = "concat(minute, ',', points, ',', total, ',', least, ',', most)"
        return (
            f"SELECT arrayStringConcat(groupArray({parts}), ';') FROM ("  # noqa: S608
            "SELECT intDiv(toUnixTimestamp(TimeUnix), 60) AS minute, count() AS points, sum(Value) AS total,"
            f" min(Value) AS least, max(Value) AS most FROM ({points}) GROUP BY minute)"
        )


@dataclass(frozen=True, slots=True)
class Series:
    """What was measured, minute by minute without a gap; a minute without points has none.

    Attributes:
        first: the first minute, counted from 1970.
        points: how many points each minute has.
        totals: their sums.
        least: the smallest of each minute.
        most: the largest of each minute.
    """

    first: int
    points: tuple[int, ...]
    totals: tuple[float, ...]
    least: tuple[float, ...]
    most: tuple[float, ...]


def make_series(minutes: Iterable[tuple[int, int, float, float, float]]) -> Series | None:
    """Return the series of minutes in any order; None if there are none, or they reach too far.

    Args:
        minutes: of each minute that has points: when, how many, their sum, the smallest, the largest.
    """
    told = {when: (points, total, least, most) for when, points, total, least, most in minutes}
    if not told or max(told) - min(told) >= MAX_MINUTES:
        return None
    dense = [told.get(when, (0, 0.0, 0.0, 0.0)) for when in range(min(told), max(told) + 1)]
    points, totals, least, most = zip(*dense, strict=True)
    return Series(min(told), points, totals, least, most)


def read_series(text: str) -> Series | None:
    """Return what a selector's query gave; None if it found nothing."""
    return make_series(
        (int(when), int(points), total, least, most)
        for when, points, total, least, most in (map(float, one.split(",")) for one in text.split(";") if one)
    )
