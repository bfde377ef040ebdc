"""Grades as JSON: what the store, the summary and the command line show."""

from __future__ import annotations

from typing import Any

from proctor.core.gatewaypolicy.pricing import TokenPrice
from proctor.core.grading.judge_votes import JudgedMark, Judgement
from proctor.core.grading.marks import Grade, Mark, Programmatic, Ungraded


def render_grade(grade: Grade) -> dict[str, Any]:
    """Return a grade as JSON; numbers with a fraction are strings, as everywhere in a run's files."""
    return {
        "score": str(grade.score),
        "scored_by": grade.scored_by,
        "programmatic": render_programmatic(grade.programmatic),
        "judge": None if grade.judge is None else str(grade.judge),
        "penalty": str(grade.penalty),
    }


def render_ungraded(ungraded: Ungraded, programmatic: Programmatic | None) -> dict[str, Any]:
    """Return in a grade's place why there is none; what checks gave is shown, and is no score."""
    return {
        "score": None,
        "ungraded": ungraded.reason,
        "programmatic": None if programmatic is None else render_programmatic(programmatic),
        "judge": None,
        "judgement": None,
        "penalty": "0",
    }


def render_judgement(judged: Judgement | None, price: TokenPrice | None = None) -> dict[str, Any] | None:
    """Return what the judge gave; None where nobody judged.

    Args:
        judged: its marks.
        price: of its tokens; without one there is no cost, not even 0.
    """
    if judged is None:
        return None
    cost = {} if price is None else {"usd": format(price.cost(judged.usage), "f")}
    return cost | {
        "marks": [_render_judged(mark) for mark in judged.marks],
        "inputTokens": judged.usage.total - judged.usage.output_tokens,
        "outputTokens": judged.usage.output_tokens,
    }


def _render_judged(mark: JudgedMark) -> dict[str, Any]:
    return {
        "id": mark.id,
        "weight": mark.weight,
        "score": str(mark.score),
        "votes": list(mark.votes),
        "why": mark.reason,
    }


def render_programmatic(graded: Programmatic) -> dict[str, Any]:
    """Return what checks gave."""
    return {
        "score": str(graded.score),
        "remark": graded.remark,
        "checks": [render_mark(mark) for mark in graded.checks],
    }


def render_mark(mark: Mark) -> dict[str, Any]:
    """Return one criterion's outcome."""
    return {
        "id": mark.id,
        "weight": mark.weight,
        "polarity": mark.polarity.value,
        "satisfied": mark.satisfied,
        "why": mark.why,
    }
