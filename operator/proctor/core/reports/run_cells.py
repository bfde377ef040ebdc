"""Cells of run.json as statistics and reports need them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from proctor.core.ids import CellKey
from proctor.core.stats.observations import CellFate, Observation
from proctor.core.trajectory.outcome import Outcome


def read_observation(cell: Mapping[str, Any]) -> Observation:
    """Read one cell of run.json."""
    state = cell.get("state", "")
    score = cell.get("score")
    is_graded = state == CellFate.GRADED and score is not None
    fate = CellFate.CANCELLED
    if is_graded:
        fate = CellFate.GRADED
    elif state in {CellFate.UNGRADED, CellFate.GRADED}:
        fate = CellFate.UNGRADED
    elif state == CellFate.INFRA_ERRORED:
        fate = CellFate.INFRA_ERRORED
    outcome = cell.get("outcome")
    usd = cell.get("usd")
    return Observation(
        cell=CellKey.parse(cell["cell"]),
        fate=fate,
        score=float(score) if is_graded and score is not None else None,
        outcome=None if outcome is None else Outcome(outcome),
        tool_calls=cell.get("toolCalls", 0),
        tokens=cell.get("inputTokens", 0) + cell.get("outputTokens", 0),
        usd=None if usd is None else Decimal(usd),
        seconds=float(cell.get("seconds", 0.0)),
    )


def read_marks(cell: Mapping[str, Any]) -> dict[str, float]:
    """Read the marks of a cell of run.json; a judge's have their own names beside those of checks."""
    checks = (cell.get("programmatic") or {}).get("checks", [])
    judged = (cell.get("judgement") or {}).get("marks", [])
    marks = {str(mark["id"]): float(bool(mark["satisfied"])) for mark in checks}
    return marks | {f"judge: {mark['id']}": float(mark["score"]) for mark in judged}
