"""Cancelling a run, whether an executor is at work on it or not."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from proctor.api.gate import Enforcement
from proctor.api.run import CellCounts, Condition, ConditionStatus, ConditionType, EvalRun, Phase, Verdict
from proctor.clock import utc_now
from proctor.local.durable import write_atomic
from proctor.local.locks import read_holder
from proctor.local.rundir import find_run
from proctor.reconcile.conditions import Standing, build_conditions
from proctor.reconcile.observed import Isolation

_REASON = "CancelRequested"
_END_STATES = {"pending": "cancelled", "running": "cancelled"}
_SUMMARY = "cancelled by request; grades and trajectories are kept"


def cancel_run(data_dir: Path, name: str) -> str:
    """Cancel a run; return what was done, for people.

    Raises:
        InvalidInput: there is no such run.
        Terminal: its files can't be read or written.
    """
    directory = find_run(data_dir / "runs", name)
    run = directory.read_run()
    if run.status.terminal:
        return f"run {directory.name} has ended already: {run.status.verdict}"
    write_atomic(directory.cancel_request, b"")
    if read_holder(data_dir) == directory.name:
        # It sees the request within a second.
        return f"run {directory.name} is asked to end; its executor ends its cells and makes it Cancelled"
    cells = [
        cell | {"state": _END_STATES.get(str(cell.get("state")), cell.get("state"))} for cell in directory.read_cells()
    ]
    directory.write_run(_cancelled(run), cells)
    return f"run {directory.name} is Cancelled"


def _cancelled(run: EvalRun) -> EvalRun:
    now = utc_now()
    cells = run.status.cells
    counts = CellCounts(
        total=cells.total,
        graded=cells.graded,
        ungraded=cells.ungraded,
        infra_errored=cells.infra_errored,
        cancelled=cells.cancelled + cells.running + cells.pending,
    )
    status = run.status.model_copy(
        update={
            "verdict": Verdict.CANCELLED,
            "reason": _REASON,
            "summary": _SUMMARY,
            "phase": Phase.COMPLETE,
            "observed_generation": run.metadata.generation or 1,
            "ended": now,
            "cells": counts,
            "conditions": _conclude(run, now),
        }
    )
    return run.model_copy(update={"status": status})


def _conclude(run: EvalRun, now: datetime) -> tuple[Condition, ...]:
    before = {condition.type: condition.status for condition in run.status.conditions}
    isolated = before.get(ConditionType.NETWORK_ENFORCED) is ConditionStatus.TRUE
    standing = Standing(
        verdict=Verdict.CANCELLED,
        enforcement=run.status.enforcement or Enforcement.ENFORCE,
        reason=_REASON,
        summary=_SUMMARY,
        suspended=False,
        seeded=before.get(ConditionType.SEEDED) is ConditionStatus.TRUE,
        isolation=Isolation.ENFORCED if isolated else Isolation.UNPROVEN,
        cells_may_start=False,
        graded=True,
    )
    generation = run.metadata.generation or 1
    return build_conditions(standing, run.status.conditions, generation=generation, now=now)
