"""From marks to a score."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from proctor.core.grading.attempts import digest_rubrics, grade_attempt
from proctor.core.grading.checks import check_answer
from proctor.core.grading.combining import combine, penalise_errors, score_marks
from proctor.core.grading.marks import Grade, Mark, Programmatic, Weights
from proctor.core.grading.rubric import Rubric
from proctor.core.ids import AttemptKey, CellKey
from proctor.core.scenarios.answer import Polarity
from proctor.core.trajectory.counting import find_counting, select_counting
from proctor.core.trajectory.outcome import AnswerSource, AttemptRecord, Outcome
from support.grading import shipped_rubric

INSTANT = datetime(2026, 11, 30, 12, tzinfo=UTC)
RIGHT = b"Root cause: payments-api can't connect to payments-pg-2.db.fernway.internal (DBTimeout)."


def make_mark(weight: int, polarity: Polarity, *, satisfied: bool) -> Mark:
    return Mark("x", weight, polarity, satisfied, "")


def make_record(*, attempt: int = 1, outcome: Outcome = Outcome.COMPLETED, replicate: int = 1) -> AttemptRecord:
    return AttemptRecord(
        key=AttemptKey("run", CellKey("error-root-cause", "s", "m", replicate), attempt),
        outcome=outcome, reason="", opened=INSTANT, ended=INSTANT, requests=1, turns=1, tool_calls=10,
        agent_tool_errors=0, server_tool_errors=0, infra_tool_errors=0, denied=0, input_tokens=0, output_tokens=0,
        usd=None, waited_us=0, limit=None, answer_source=AnswerSource.PUT, answer_digest="", tools_digest="",
        trajectory_digest="", events=1,
    )  # fmt: skip


def grade(rubric: Rubric, record: AttemptRecord, answer: bytes) -> Grade:
    return grade_attempt(record, check_answer(rubric, answer), Weights())


@pytest.mark.parametrize(
    ("positive", "negative", "score"),
    [
        ((True, True), (True, True), "1.0000"),
        ((False, False), (True, True), "0.0000"),  # nothing earns nothing
        ((True, False), (True, True), "0.5000"),  # negatives pay in proportion
        ((True, True), (False, False), "0.5000"),
        ((True, False), (False, True), "0.3750"),
    ],
)
def test_negatives_pay_as_much_as_was_earned(
    positive: tuple[bool, ...], negative: tuple[bool, ...], score: str
) -> None:
    """Grading rule 2: credit for negatives is scaled by the share of positive weight satisfied."""
    marks = [make_mark(2, Polarity.POSITIVE, satisfied=one) for one in positive]
    marks += [make_mark(2, Polarity.NEGATIVE, satisfied=one) for one in negative]
    assert score_marks(marks) == Decimal(score)


@pytest.mark.parametrize(
    ("calls", "agent", "infra", "penalty"),
    [
        (10, 0, 0, "0"),
        (10, 1, 0, "0.1"),
        (10, 9, 0, "0.2"),  # capped
        (10, 1, 5, "0.2"),  # infrastructure's errors are in neither side of the rate
        (10, 1, 2, "0.125"),
        (0, 0, 0, "0"),
        (3, 0, 3, "0"),
        (3, 1, 3, "0"),
    ],
)
def test_penalty_is_the_rate_of_the_agents_own_errors(calls: int, agent: int, infra: int, penalty: str) -> None:
    """M-A9, grading rule 8: min(cap, agent errors / (calls - infra))."""
    assert penalise_errors(calls, agent, infra, Decimal("0.2")) == Decimal(penalty)


@pytest.mark.parametrize(
    ("programmatic", "judge", "penalty", "score"),
    [
        ("1", "1", "0", "1"),
        ("0.5", "1", "0", "0.8"),
        ("0.5", "0.5", "0.2", "0.3"),
        ("0", "0", "0.2", "0"),
        ("0.5", None, "0", "0.5"),
        ("0.1", None, "0.2", "0"),
    ],
)
def test_score_of_a_cell(programmatic: str, judge: str | None, penalty: str, score: str) -> None:
    """M-A9, grading rules 1 and 5: clamp(0.4 p + 0.6 j - penalty); without a judge programmatic, and it says so."""
    grade = combine(
        Programmatic(Decimal(programmatic), ()),
        judge=None if judge is None else Decimal(judge),
        penalty=Decimal(penalty),
        weights=Weights(),
    )
    assert grade.score == Decimal(score)
    assert grade.scored_by == ("programmatic" if judge is None else "programmatic+judge")


def test_infrastructure_failures_are_not_graded_and_limits_are() -> None:
    """Grading rule 9: only infra_error is left out; a time limit is the agent's own outcome."""
    records = [
        make_record(attempt=1, outcome=Outcome.INFRA_ERROR),
        make_record(attempt=2, outcome=Outcome.TIME_LIMIT),
        make_record(replicate=2, outcome=Outcome.INFRA_ERROR),
        make_record(replicate=3, outcome=Outcome.GAVE_UP),
    ]
    assert [(one.key.cell.replicate, one.key.attempt) for one in select_counting(records)] == [(1, 2), (3, 1)]


def test_of_attempts_that_turn_up_late_the_last_counts_whatever_their_order() -> None:
    """Grading rule 9: an attempt that was given up for lost may still get its row."""
    late, last = make_record(attempt=1), make_record(attempt=2)
    assert find_counting([late, last]) == find_counting([last, late]) == last
    assert find_counting([make_record(outcome=Outcome.INFRA_ERROR)]) is None


def test_an_attempt_without_an_answer_scores_zero_and_errors_cost() -> None:
    """Grading rules 8 and 9: no answer is 0; the gateway's counts decide the penalty."""
    rubric = shipped_rubric("error-root-cause")
    assert grade(rubric, make_record(), b"").score == 0
    clean = grade(rubric, make_record(), RIGHT)
    faulty = grade(rubric, replace(make_record(), agent_tool_errors=1), RIGHT)
    spoiled = grade(rubric, replace(make_record(), infra_tool_errors=5, server_tool_errors=5), RIGHT)
    assert clean.score - faulty.score == Decimal("0.1")
    assert spoiled.score == clean.score


def test_grades_do_not_depend_on_the_arm() -> None:
    """M-A9, S21: grading is blind; equal answers of different arms have equal grades."""
    rubric = shipped_rubric("error-root-cause")
    other = replace(make_record(), key=AttemptKey("run", CellKey("error-root-cause", "other", "mm", 3), 1))
    assert grade(rubric, make_record(), RIGHT) == grade(rubric, other, RIGHT)


def test_rubric_digests() -> None:
    """Grading rule 7: one digest names the rubrics of a run, whatever their order."""
    assert digest_rubrics({"a": "1", "b": "2"}) == digest_rubrics({"b": "2", "a": "1"})
    assert digest_rubrics({"a": "1"}) != digest_rubrics({"a": "2"})
