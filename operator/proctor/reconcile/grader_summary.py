"""What a grader's summary says, whichever way it came."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import ROUND_UP, Decimal, InvalidOperation
from typing import Any

from proctor.core.gatewaypolicy.pricing import MAX_COUNT
from proctor.core.ids import CellKey
from proctor.errors import Terminal
from proctor.reconcile.observed import GraderSeen, GradeSeen

_LEAST_COST = Decimal("0.000001")
_MAX_COST = Decimal(999_999)


def merge_summaries(before: GraderSeen, after: GraderSeen) -> GraderSeen:
    """Return the newer summary with what a grader that was started again has not read back yet."""
    if before.rubric_digest != after.rubric_digest or before.judge_digest != after.judge_digest:
        return after
    return replace(after, grades={**before.grades, **after.grades})


def parse_summary(body: bytes) -> GraderSeen:
    """Read a grader's summary.

    Raises:
        Terminal: it is not what a grader writes.
    """
    try:
        values = json.loads(body)
        grades = {CellKey.parse(cell): _parse_grade(grade) for cell, grade in values["grades"].items()}
        judge = values.get("judge") or {}
        agreement, usd = judge.get("agreement"), judge.get("usd")
        return GraderSeen(
            grades=grades,
            rubric_digest=values.get("rubricDigest") or "",
            judge_digest=values.get("judgeDigest") or "",
            agreement=None if agreement is None else Decimal(agreement),
            judge_tokens=(_parse_tokens(judge.get("inputTokens", 0)), _parse_tokens(judge.get("outputTokens", 0))),
            judge_usd=None if usd is None else _parse_cost(usd),
            fault=values.get("fault") or "",
        )
    except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation) as e:
        raise Terminal(f"reading the grader's summary: {e!r}") from e


def _parse_tokens(value: str | int) -> int:
    return min(int(value), MAX_COUNT)  # a provider may count what it likes; the status holds no more


def _parse_cost(value: str) -> Decimal:
    # As above; and rounded up to what the status holds, so that a small cost does not look like none.
    return min(Decimal(value).quantize(_LEAST_COST, ROUND_UP), _MAX_COST)


def _parse_grade(values: Mapping[str, Any]) -> GradeSeen:
    score = values["score"]
    return GradeSeen(
        attempt=int(values["attempt"]),
        score=None if score is None else Decimal(str(score)),
        reason=values.get("ungraded") or "",
    )
