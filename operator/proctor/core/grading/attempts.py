"""Grading of ended attempts: which ones, on which answer, with which penalty (grading rules 8 and 9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from proctor.core.digests import digest_json
from proctor.core.grading.checks import check_answer
from proctor.core.grading.combining import combine, penalise_errors
from proctor.core.grading.marks import Grade, Weights
from proctor.core.grading.rubric import Rubric
from proctor.core.trajectory.outcome import AttemptRecord, Outcome


def is_graded(record: AttemptRecord) -> bool:
    """Whether an attempt gets a grade: whatever the agent's own outcome was, but never infrastructure's failure."""
    return record.outcome is not Outcome.INFRA_ERROR


def select_attempts(records: Iterable[AttemptRecord]) -> list[AttemptRecord]:
    """Return the attempt that counts of each cell: the last that infrastructure did not fail."""
    latest: dict[str, AttemptRecord] = {}
    for record in records:
        cell = str(record.key.cell)
        if is_graded(record) and (cell not in latest or latest[cell].key.attempt < record.key.attempt):
            latest[cell] = record
    return [latest[cell] for cell in sorted(latest)]


def grade_attempt(rubric: Rubric, record: AttemptRecord, answer: bytes, weights: Weights) -> Grade:
    """Grade an attempt by checks; the grader is told nothing of server, model or arm.

    Args:
        rubric: the scenario's, with the dataset's facts.
        record: how the attempt went; only its counts of tool calls are used.
        answer: the final answer; empty without one.
        weights: the suite's.
    """
    penalty = penalise_errors(
        record.tool_calls, record.agent_tool_errors, record.infra_tool_errors, weights.error_penalty_cap
    )
    return combine(check_answer(rubric, answer), judge=None, penalty=penalty, weights=weights)


def digest_rubrics(digests: Mapping[str, str]) -> str:
    """Return one digest for the rubrics of all scenarios of a run."""
    return digest_json(dict(digests))
