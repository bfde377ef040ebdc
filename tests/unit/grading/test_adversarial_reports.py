"""Answers to service-health-check written to be graded wrongly: calm ones in alarming words, alarms in calm ones."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from proctor.core.grading.checks import check_answer, find_statement
from proctor.core.grading.facts import fill_text
from proctor.core.scenarios.answer import Criterion, Polarity
from support.grading import shipped_key, shipped_rubric

SCENARIO = "service-health-check"
CORPUS = YAML(typ="safe").load(Path(__file__).with_name("adversarial_reports.yaml"))


def alarms(sentence: str) -> list[str]:
    """Return the negative criteria that a sentence fires."""
    rubric = shipped_rubric(SCENARIO)
    text = fill_text(sentence, rubric.facts)
    return [name for name in rubric.negative_ids if find_statement(rubric, name, text) is not None]


@pytest.mark.parametrize("case", CORPUS["right"], ids=lambda case: case["text"][:40])
def test_right_reports_earn_whatever_their_dress(case: dict[str, str]) -> None:
    """M-A9, grading rule 3: lists, tables, prose, JSON; nothing that is said to be well counts as an alarm."""
    rubric = shipped_rubric(SCENARIO)
    graded = check_answer(rubric, fill_text(case["text"], rubric.facts))
    assert [mark.id for mark in graded.checks if mark.polarity is Polarity.NEGATIVE and not mark.satisfied] == []
    assert graded.score >= Decimal(case["least"]), graded


@pytest.mark.parametrize("case", CORPUS["wrong"], ids=lambda case: case["text"][:40])
def test_wrong_reports_do_not(case: dict[str, str]) -> None:
    """Grading rules 2 and 3: alarms, guesses, questions, plans, and an all-clear that missed everything."""
    rubric = shipped_rubric(SCENARIO)
    assert check_answer(rubric, fill_text(case["text"], rubric.facts)).score <= Decimal(case["most"])


@pytest.mark.parametrize("sentence", CORPUS["calm"])
def test_no_alarm_is_heard_where_none_is_sounded(sentence: str) -> None:
    """Grading rule 3: "no escalation needed" never counts as an escalation."""
    assert alarms(sentence) == []


@pytest.mark.parametrize("sentence", CORPUS["loud"])
def test_an_alarm_is_heard_however_it_is_put(sentence: str) -> None:
    """Grading rule 3: and an alarm always does."""
    assert alarms(sentence) != []


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("I recommend paging the on-call engineer.", True),
        ("This may have to be escalated.", True),
        ("## Recommendations\n- Page the on-call engineer", True),
        ("I recommend not paging anybody.", False),
        ("If it gets worse, page the on-call engineer.", False),
        ("I recommend paging the on-call engineer if it gets worse.", False),
        ("Should anybody be paged?", False),
    ],
)
def test_what_is_only_recommended_is_urged(text: str, met: bool) -> None:
    """Grading rule 3: advice is no statement, but whoever gives it wants it."""
    assert (find_statement(shipped_rubric(SCENARIO), "urges-people", text) is not None) == met


def test_well_is_no_denial_where_no_cause_is_asked_for() -> None:
    """A report may say in one breath that all is well, and how well; a cause that is healthy is none."""
    report = shipped_rubric(SCENARIO)
    text = fill_text("<<service>> is healthy with a p99 of <<p99>> ms.", report.facts)
    assert find_statement(report, "latency", text) is not None
    blame = "The <<store>> on which requests wait for 2 s is healthy."
    causes = shipped_rubric("latency-spike")
    assert find_statement(causes, "slow-query", fill_text(blame, causes.facts)) is None


def test_a_heading_that_says_something_is_read() -> None:
    """A title may hold the service, and a bold line the verdict."""
    report = shipped_rubric(SCENARIO)
    told = fill_text("# Health check: <<service>>\n\n**Status: healthy**\n\n## Incidents\n\nNone.", report.facts)
    assert find_statement(report, "reported-on", told) is not None
    assert find_statement(report, "verdict", told) is not None
    assert alarms(told) == []


@pytest.mark.parametrize(
    "heading", ["What is not as it was", "Not seen before", "Health check", "Health checks of the hour"]
)
def test_headings_of_reports_take_nothing_back(heading: str) -> None:
    """Grading rule 3: what stands under "Not the cause" is denied, under "Not as it was" it is told."""
    report = shipped_rubric(SCENARIO)
    told = fill_text(f"## {heading}\n- <<new_path>> is new.", report.facts)
    assert find_statement(report, "new-route", told) is not None


def test_only_negative_criteria_urge() -> None:
    """What an answer merely recommends is no finding."""
    line = shipped_key(SCENARIO).criteria[0].model_dump(mode="json")
    with pytest.raises(ValueError, match="only a negative criterion may have"):
        Criterion.model_validate(line | {"urges": ["fares"]})


def test_more_false_alarms_than_allowed_earn_nothing() -> None:
    """Grading rule 2: a report that cries wolf three times is worth none of its figures."""
    rubric = shipped_rubric(SCENARIO)
    figures = fill_text("<<service>>: <<requests>> requests, p99 <<p99>> ms. <<new_path>> is new.", rubric.facts)
    wolves = ["This is an incident.", "Page the on-call engineer.", "The SLO is breached."]
    scores = [check_answer(rubric, " ".join([figures, *wolves[:count]])) for count in range(4)]
    assert scores[0].score > scores[1].score > scores[2].score > scores[3].score == 0
    assert scores[3].remark == "it says 3 things that are not so: cries-incident, urges-people, target-missed"


def test_weights_are_those_of_the_scenario() -> None:
    """Scenarios, 2.5: positive weight 11, negative 11."""
    lines = shipped_key(SCENARIO).criteria
    positive = sum(line.weight for line in lines if line.polarity is Polarity.POSITIVE)
    assert (positive, sum(line.weight for line in lines) - positive) == (11, 11)
