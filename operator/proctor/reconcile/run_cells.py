"""The cells of a run as run.json has them: one line each, with what its valid attempt used and what it scored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.core.trajectory.outcome import AttemptRecord
from proctor.reconcile.look import take_look
from proctor.reconcile.observed import Observed
from proctor.reconcile.progress import CellProgress, CellState
from proctor.reconcile.snapshot import RunSnapshot


def render_cells(
    run: RunSnapshot, observed: Observed, marks: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, Any], ...]:
    """Return every cell of a run.

    Args:
        run: the run.
        observed: what was last seen.
        marks: parts of the grades by cell, as the grader's summary has them.
    """
    look = take_look(run, observed, run.active_since)
    terminal = run.status.terminal
    return tuple(_render(cell, marks.get(str(cell.key), {}), terminal=terminal) for cell in look.progress)


def _render(cell: CellProgress, marks: Mapping[str, Any], *, terminal: bool) -> dict[str, Any]:
    line: dict[str, Any] = {
        "cell": str(cell.key),
        "scenario": cell.key.scenario,
        "server": cell.key.server,
        "model": cell.key.model,
        "replicate": cell.key.replicate,
        "state": _name_state(cell.state, terminal=terminal),
        "attempts": cell.next_attempt - 1,
    }
    if cell.valid is not None:
        line |= _render_attempt(cell.valid)
    elif cell.last_failure:
        line["reason"] = cell.last_failure
    if cell.grade is not None:
        line["score"] = None if cell.grade.score is None else str(cell.grade.score)
        if cell.grade.reason:
            line["ungraded"] = cell.grade.reason
        parts = ("programmatic", "judge", "judgement", "penalty")
        line |= {part: marks[part] for part in parts if marks.get(part) is not None}
    return line


def _name_state(state: CellState, *, terminal: bool) -> str:
    match state:
        case CellState.PENDING | CellState.RUNNING if terminal:
            return "cancelled"
        case CellState.GRADING:
            return "ungraded" if terminal else "running"
        case _:
            return state.value


def _render_attempt(record: AttemptRecord) -> dict[str, Any]:
    seconds = (record.ended - record.opened).total_seconds() - record.waited_us / 1e6
    return {
        "attempt": record.key.attempt,
        "id": record.key.opaque_id,
        "outcome": record.outcome.value,
        "reason": record.reason,
        "turns": record.turns,
        "toolCalls": record.tool_calls,
        "toolErrors": {
            "agent": record.agent_tool_errors,
            "server": record.server_tool_errors,
            "infra": record.infra_tool_errors,
        },
        "inputTokens": record.input_tokens,
        "outputTokens": record.output_tokens,
        "usd": None if record.usd is None else format(record.usd, "f"),
        "seconds": f"{max(seconds, 0.0):.3f}",
        "waitedSeconds": f"{record.waited_us / 1e6:.3f}",
        "answerDigest": record.answer_digest,
        "trajectoryDigest": record.trajectory_digest,
    }
