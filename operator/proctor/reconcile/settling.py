"""provisional"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.api.run import ArmStatus, ComparisonStatus, ControlsStatus, Verdict
from proctor.reconcile.halting import Halt
from proctor.reconcile.progress import CellProgress, CellState
from proctor.reconcile.snapshot import RunSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    verdict: Verdict
    reason: str
    summary: str
    arms: tuple[ArmStatus, ...] = ()
    comparisons: tuple[ComparisonStatus, ...] = ()
    controls: ControlsStatus = ControlsStatus()


def find_control_halt(run: RunSnapshot, progress: Sequence[CellProgress]) -> Halt | None:
    controls = [cell for cell in progress if cell.key.control is not None]
    if not all(cell.final for cell in controls):
        return None
    lost = next((cell for cell in controls if cell.state is not CellState.GRADED), None)
    if lost is not None:
        why = lost.last_failure or (lost.grade.reason if lost.grade else "")
        return Halt(Verdict.ERROR, "ControlsNotMeasured", f"control {lost.key} has no score: {why}")
    return None


def settle_run(run: RunSnapshot, progress: Sequence[CellProgress]) -> Findings:
    return Findings(verdict=Verdict.PASS, reason="WithinMaxDrop", summary="provisional")


def summarise_progress(progress: Sequence[CellProgress]) -> str:
    done = sum(1 for cell in progress if cell.final)
    return f"{done} of {len(progress)} cells done"
