"""What agents are told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from proctor.core.agents.prompt import PromptLimits, neutral_prompt, told_text
from proctor.core.scenarios.artifact import DashboardKey
from proctor.core.scenarios.brief import AnswerFormat, Brief, load_brief
from proctor.core.scenarios.reference import load_reference
from support.grading import NAMES, shipped_key, shipped_rubric
from support.playing import ANCHOR, SCENARIOS

LIMITS = PromptLimits(max_turns=25, max_tool_calls=40)
BRIEF = Brief(prompt="Something is slow since this morning. Find out why.")
HELP = ("otel_", "clickhouse", "sql", "table", "column", "schema", "select ", "database", "mcp", "serviceName")
SQL = {"clickhouse", "sql", "table", "column", "select ", "database"}
"""What an answer that holds SQL is described in; it names nothing of the data."""


def test_the_prompt_names_role_time_and_budget() -> None:
    """M-A7: SRE role, the fixed anchor in words and RFC 3339, what "the past 10 minutes" means, 15 to 25 calls."""
    system, prompt = neutral_prompt(BRIEF, ANCHOR, LIMITS)
    assert "site reliability engineer" in system
    assert "Monday, 30 November 2026, 12:00:00 UTC" in system
    assert "2026-11-30T12:00:00Z" in system
    assert '"the past 10 minutes" means the ten minutes before it' in system
    assert "15 to 25 tool calls" in system
    assert "40 tool calls in 25 turns" in system
    assert prompt == BRIEF.prompt


def test_an_anchor_in_another_zone_is_the_same_instant() -> None:
    """M-A7: one instant, however it was written."""
    elsewhere = ANCHOR.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert neutral_prompt(BRIEF, elsewhere, LIMITS) == neutral_prompt(BRIEF, ANCHOR, LIMITS)
    assert neutral_prompt(BRIEF, datetime(2027, 1, 1, tzinfo=UTC), LIMITS) != neutral_prompt(BRIEF, ANCHOR, LIMITS)


def test_instructions_are_appended_as_they_are() -> None:
    """Manifest, agent.instructions: a prompt under test; braces in it mean nothing."""
    told = neutral_prompt(BRIEF, ANCHOR, LIMITS, instructions=" Use {form} and {instant}. ")
    assert told.system == neutral_prompt(BRIEF, ANCHOR, LIMITS).system + "\n\nUse {form} and {instant}."
    assert neutral_prompt(BRIEF, ANCHOR, LIMITS, instructions="  ") == neutral_prompt(BRIEF, ANCHOR, LIMITS)


def test_the_answer_is_asked_for_in_the_briefs_form() -> None:
    """Manifest, the answer: text, or JSON as the brief asks."""
    assert "plain text" in neutral_prompt(BRIEF, ANCHOR, LIMITS).system
    assert "JSON" in neutral_prompt(Brief(prompt=BRIEF.prompt, answer=AnswerFormat.JSON), ANCHOR, LIMITS).system


@pytest.mark.parametrize("name", NAMES)
def test_the_prompt_gives_no_help_with_the_schema(name: str) -> None:
    """M-A7: finding the schema is part of the test."""
    told = told_text(load_brief(SCENARIOS / name)).lower()
    spoken = SQL if isinstance(shipped_key(name).artifact, DashboardKey) else set()
    assert [word for word in HELP if word not in spoken and word.lower() in told] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_prompt_leaks_nothing(name: str) -> None:
    """P28, S20: no word of the scenario's name, no fact, no rubric line's name in what an agent is told."""
    told = told_text(load_brief(SCENARIOS / name)).lower()
    words = {word.strip(".,;:()\"'") for word in told.split()}
    asked = load_brief(SCENARIOS / name).prompt.split()
    planted = {str(value).lower() for value in load_reference(SCENARIOS / name).facts.values()}
    assert words & set(name.split("-")) == set()
    assert [text for text in planted if not text.isdigit() and text in told] == []
    assert [number for number in planted if number.isdigit() and number in asked] == []
    assert [line.id for line in shipped_key(name).criteria if line.id in words] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_brief_satisfies_no_pattern_of_the_rubric(name: str) -> None:
    """S20: what the rubric looks for stands nowhere in what an agent is told."""
    rubric = shipped_rubric(name)
    told = told_text(load_brief(SCENARIOS / name))
    assert {label for label in rubric.clauses.find(told) if label.startswith(("says:", "blames:"))} == set()
