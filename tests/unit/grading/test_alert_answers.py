"""Answers that are alert rules: marks follow from what rules do, and whatever else an answer holds earns nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pytest

from proctor.core.grading.alert_rules import Series
from proctor.core.grading.artifacts import check_artifact
from proctor.core.grading.marks import Programmatic, Ungraded
from proctor.core.grading.rows import Fetched, Question, Refused, Rows
from proctor.core.scenarios.artifact import AlertsKey
from proctor.errors import Retryable
from support.alert_rules import plateau, rule_of, submit

INSTANTS = {"first": ("02:00", "03:00"), "second": ("17:00", "17:30")}
"""Minutes 120 to 180 and 1020 to 1050 of the day that the series begin with."""
KEY: dict[str, Any] = {
    "kind": "alerts",
    "incidents": [
        {"id": name, "from": f"2025-02-19 {start}:00", "until": f"2025-02-19 {until}:00"}
        for name, (start, until) in INSTANTS.items()
    ],
    "planned": [{"from": "2025-02-19 08:00:00", "until": "2025-02-19 09:00:00"}],
    "checks": [
        {"id": "noise", "kind": "lists", "names": "noise", "holds": "a,b", "weight": 2, "about": "Noise."},
        {"id": "first", "kind": "detects", "incident": "first", "weight": 2, "about": "Found."},
        {"id": "soon", "kind": "detects", "incident": "first", "within": 5, "weight": 1, "about": "Found soon."},
        {"id": "second", "kind": "detects", "incident": "second", "weight": 2, "about": "Found."},
        {"id": "precise", "kind": "precise", "least": "0.9", "weight": 3, "about": "Precise."},
    ],
}
GOOD = plateau(2000, (120, 180), (1020, 1050))


class Watched:
    """A dataset in which every metric is the same series."""

    def __init__(self, series: Series = GOOD, *, away: bool = False, refused: bool = False) -> None:
        self.series, self.away, self.refused = series, away, refused
        self.asked: list[Question] = []

    async def fetch(self, questions: Iterable[Question]) -> dict[Question, Fetched]:
        self.asked = list(questions)
        if self.away:
            raise Retryable("the dataset is away")
        rows = zip(self.series.points, self.series.totals, self.series.least, self.series.most, strict=True)
        text = ";".join(f"{self.series.first + at},{','.join(map(str, row))}" for at, row in enumerate(rows))
        return {one: Refused("too slow") if self.refused else Rows(((text,),)) for one in self.asked}


def grade(answer: bytes, source: Watched | None = None, **parts: Any) -> Programmatic | Ungraded:
    key = AlertsKey.model_validate(KEY | parts)
    return asyncio.run(check_artifact(key, answer, source or Watched()))


def met(answer: bytes, source: Watched | None = None) -> set[str]:
    graded = grade(answer, source)
    assert isinstance(graded, Programmatic), graded
    return {mark.id for mark in graded.checks if mark.satisfied}


def test_rules_earn_by_what_they_do() -> None:
    """Part 2: graded by running the rules, not by wording: names and order are nothing."""
    assert met(submit(rule_of(), noise=["b", "a"])) == {"noise", "first", "soon", "second", "precise"}
    assert met(submit(rule_of(**{"for": "20m"}))) == {"first", "second", "precise"}
    assert met(submit(rule_of(name="finds all incidents", threshold=1000))) == set()


def test_people_do_not_look_at_what_is_mostly_wrong() -> None:
    """Names everything: rules that always fire, or at every turn, find nothing that counts."""
    assert met(submit(rule_of(threshold=0))) == set()
    flapping = plateau(2000, (120, 180), (1020, 1050), *((at, at + 1) for at in range(200, 1000, 7)))
    assert met(submit(rule_of()), Watched(flapping)) == set()
    assert met(submit(rule_of(**{"for": "2m"})), Watched(flapping)) == {"first", "soon", "second", "precise"}


def test_planned_work_is_known() -> None:
    """Decoy: what happens in planned work is no incident, and a rule may keep quiet then."""
    source = Watched(plateau(2000, (120, 180), (480, 540), (1020, 1050)))
    assert met(submit(rule_of()), source) == {"first", "soon", "second"}
    assert met(submit(rule_of(quiet_in_planned_work=True)), source) == {"first", "soon", "second", "precise"}


def test_rules_that_sleep_are_not_precise() -> None:
    """Finding one incident of two is half, and counts; finding none is never precise."""
    assert met(submit(rule_of()), Watched(plateau(2000, (120, 180)))) == {"first", "soon", "precise"}
    assert met(submit(rule_of()), Watched(plateau(2000))) == set()


@pytest.mark.parametrize("noise", [["a"], ["a", "b", "c"], ["A", "B"], ["a,b"], []])
def test_a_list_is_right_as_a_whole(noise: list[str]) -> None:
    """Names everything: a list of all rules is no finding."""
    assert "noise" not in met(submit(rule_of(), noise=noise))


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"Raise the threshold.",
        b"[]",
        b"{" * 50_000,
        b'{"rules": [' + b"[" * 20_000,
        b"\xff\xfe",
        b'{"rules": [], "noise": "a,b"}',
        b'{"noise": ["a", "b"]}',
        b'{"rules": [], "noise": ["a", "b"], "why": "x"}',
        b'{"rules": [], "noise": ["a", "b"], "missing": ["' + b"x" * 70_000 + b'"]}',
        submit(*[rule_of(name=str(at)) for at in range(21)], noise=["a", "b"]),
        submit(*[rule_of(name=str(at)) for at in range(10_000)], noise=["a", "b"]),
        submit(rule_of(window="99999h"), noise=["a", "b"]),
        submit(rule_of(metric="load') UNION ALL SELECT 1 --"), noise=["a", "b"]),
        submit(rule_of(), noise=["a", "b"]).replace(b"10}", b"NaN}"),
    ],
)
def test_hostile_answers_ask_nothing_and_earn_nothing(answer: bytes) -> None:
    """Hostile input: 10,000 rules, giant windows, NaN, SQL in names, huge texts are refused before any query."""
    source = Watched()
    assert met(answer, source) == set()
    assert source.asked == []


def test_twenty_rules_ask_once_for_what_they_share() -> None:
    """The cost of an answer is bounded by what it watches."""
    source = Watched()
    met(submit(*[rule_of(name=str(at), threshold=at) for at in range(20)]), source)
    assert len(source.asked) == 1


def test_trouble_with_the_dataset_is_no_grade() -> None:
    """Grading rule 5: never 0 where the dataset is away or missing, or the key has no times; a query that is at
    fault is the answer's own."""
    answer = submit(rule_of(), noise=["a", "b"])
    assert isinstance(grade(answer, Watched(away=True)), Ungraded)
    assert isinstance(asyncio.run(check_artifact(AlertsKey.model_validate(KEY), answer, None)), Ungraded)
    for start in ("soon", "2025-02-19 05:00:00"):
        broken = [{"id": name, "from": start, "until": "2025-02-19 03:00:00"} for name in INSTANTS]
        assert isinstance(grade(answer, incidents=broken), Ungraded)
    assert met(answer, Watched(refused=True)) == {"noise"}


def test_a_key_names_its_incidents() -> None:
    """Bad input: a check of an incident that is not there, or two checks of one id."""
    for check in ({"incident": "third"}, {"id": "noise"}):
        checks = [*KEY["checks"], KEY["checks"][1] | {"id": "more"} | check]
        with pytest.raises(ValueError, match=r"third|same id"):
            AlertsKey.model_validate(KEY | {"checks": checks})


def test_marks_say_why() -> None:
    """P29: each mark says what happened, so that a person can check it."""
    graded = grade(submit(rule_of(**{"for": "20m"}), noise=["a", "c"]))
    assert isinstance(graded, Programmatic)
    why = {mark.id: mark.why for mark in graded.checks}
    assert why["soon"] == "a rule fires 20 minutes after it began"
    assert why["noise"] == "it lacks 'b'"
    assert why["precise"] == "2 incidents found, people woken 0 times for nothing"
    assert graded.score == Decimal("0.7000")
    assert json.dumps(why)
