"""Grades as JSON: what the store, the summary and the command line show."""

from __future__ import annotations

from typing import Any

from proctor.core.grading.marks import Grade, Mark, Programmatic


def render_grade(grade: Grade) -> dict[str, Any]:
    """Return a grade as JSON; numbers with a fraction are strings, as everywhere in a run's files."""
    return {
        "score": str(grade.score),
        "scored_by": grade.scored_by,
        "programmatic": render_programmatic(grade.programmatic),
        "judge": None if grade.judge is None else str(grade.judge),
        "penalty": str(grade.penalty),
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
