"""Grading of ended attempts, and with which penalty (grading rule 8)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from proctor.core.digests import digest_json
from proctor.core.grading.combining import combine, penalise_errors
from proctor.core.grading.marks import Grade, Programmatic, Weights
from proctor.core.trajectory.outcome import AttemptRecord


def grade_attempt(
    record: AttemptRecord, programmatic: Programmatic, weights: Weights, *, judge: Decimal | None = None
) -> Grade:
    """Put an attempt's grade together; the grader is told nothing of server, model or arm.

    Args:
        record: how the attempt went; only its counts of tool calls are used.
        programmatic: what checks gave its answer.
        weights: the suite's.
        judge: the judge's score; None where nobody judges.
    """
    penalty = penalise_errors(
        record.tool_calls, record.agent_tool_errors, record.infra_tool_errors, weights.error_penalty_cap
    )
    return combine(programmatic, judge=judge, penalty=penalty, weights=weights)


def digest_rubrics(digests: Mapping[str, str]) -> str:
    """Return one digest for the rubrics of all scenarios of a run."""
    return digest_json(dict(digests))
