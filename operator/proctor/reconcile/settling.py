"""From graded cells to the verdict: cells as observations, the gate as rules, figures as the status has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from proctor.api.run import ArmStatus, ComparisonStatus, ControlsStatus, Estimate, ToolErrors, Verdict
from proctor.core.ids import Arm
from proctor.core.stats.controls import judge_controls
from proctor.core.stats.observations import (
    ArmFigures,
    CellFate,
    Comparison,
    ControlScores,
    GateRules,
    Interval,
    Judgement,
    Observation,
    Reason,
    Settlement,
)
from proctor.core.stats.settlement import settle
from proctor.reconcile.halting import Halt
from proctor.reconcile.progress import CellProgress, CellState, count_replicates
from proctor.reconcile.rules import build_rules
from proctor.reconcile.snapshot import RunSnapshot

_PLACES = Decimal("0.0001")
_CENT_FRACTION = Decimal("0.000001")


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a run's graded cells showed, in the status's own types."""

    verdict: Verdict
    reason: str
    summary: str
    arms: tuple[ArmStatus, ...]
    comparisons: tuple[ComparisonStatus, ...]
    controls: ControlsStatus


def find_control_halt(run: RunSnapshot, progress: Sequence[CellProgress]) -> Halt | None:
    """Return why the control cells alone end the run; None while they run, or if they are in line."""
    controls = [cell for cell in progress if cell.key.control is not None]
    if not all(cell.final for cell in controls):
        return None
    finding = judge_controls([observe_cell(cell) for cell in controls], build_rules(run.suite, seed=run.order_seed))
    if finding is None:
        return None
    return Halt(Verdict(finding.verdict.value), finding.reason.value, finding.summary + _explain_loss(controls))


def settle_run(run: RunSnapshot, progress: Sequence[CellProgress]) -> Findings:
    """Return the verdict of a run whose cells are over, and the figures that it rests on."""
    settlement = settle_progress(run, progress)
    model_side = run.suite.gate.baseline is not None and run.suite.gate.baseline.model is not None
    return Findings(
        verdict=Verdict(settlement.verdict.value),
        reason=settlement.reason.value,
        summary=settlement.summary + _explain_losses(settlement.reason, progress) + _explain_size(run, progress),
        arms=tuple(_render_arm(arm, _count_tool_errors(arm.arm, progress)) for arm in settlement.arms),
        comparisons=tuple(_render_comparison(each, model_side=model_side) for each in settlement.comparisons),
        controls=_render_controls(settlement.controls),
    )


def is_open(run: RunSnapshot, progress: Sequence[CellProgress]) -> bool:
    """Say whether more replicates may settle what cells that are over do not."""
    settlement = settle_progress(run, progress)
    return settlement.verdict is Judgement.INCONCLUSIVE and settlement.reason is not Reason.NO_BASELINE


def settle_progress(run: RunSnapshot, progress: Sequence[CellProgress]) -> Settlement:
    """Return the statistics of a run whose cells are over."""
    rules = build_rules(run.suite, seed=run.order_seed, replicates=count_replicates(progress))
    return _settle_once(tuple(observe_cell(cell) for cell in progress), rules)


@lru_cache(maxsize=4)
def _settle_once(observations: tuple[Observation, ...], rules: GateRules) -> Settlement:
    """Settle; passes that find nothing new ask again."""
    return settle(observations, rules)


def summarise_progress(run: RunSnapshot, progress: Sequence[CellProgress]) -> str:
    """Say in one line how far a run is."""
    done = sum(1 for cell in progress if cell.final)
    return f"{done} of {len(progress)} cells done{_explain_size(run, progress)}"


def _explain_size(run: RunSnapshot, progress: Sequence[CellProgress]) -> str:
    """Say how far a run with adaptive replicates has grown; nothing of one that has a fixed size."""
    if run.suite.adaptive is None:
        return ""
    return f"; {count_replicates(progress)} of at most {run.suite.adaptive.max_replicates} replicates"


def observe_cell(cell: CellProgress) -> Observation:
    """Return what statistics need of a cell whose run is over."""
    record = cell.valid
    grade = cell.grade
    score = grade.score if grade is not None and cell.state is CellState.GRADED else None
    seconds = 0.0
    if record is not None:
        seconds = max((record.ended - record.opened).total_seconds() - record.waited_us / 1e6, 0.0)
    return Observation(
        cell=cell.key,
        fate=_tell_fate(cell.state),
        score=None if score is None else float(score),
        outcome=None if record is None else record.outcome,
        tool_calls=0 if record is None else record.tool_calls,
        tokens=0 if record is None else record.input_tokens + record.output_tokens,
        usd=None if record is None else record.usd,
        seconds=seconds,
    )


def _tell_fate(state: CellState) -> CellFate:
    match state:
        case CellState.GRADED:
            return CellFate.GRADED
        case CellState.UNGRADED | CellState.GRADING:
            return CellFate.UNGRADED
        case CellState.INFRA_ERRORED:
            return CellFate.INFRA_ERRORED
        case CellState.PENDING | CellState.RUNNING:
            return CellFate.CANCELLED


def _explain_loss(controls: Sequence[CellProgress]) -> str:
    """Say why the first control without a score has none; empty where all have one."""
    for cell in controls:
        if cell.state is CellState.INFRA_ERRORED:
            return f": {cell.last_failure}"
        if cell.state is CellState.UNGRADED and cell.grade is not None:
            return f": {cell.grade.reason}"
    return ""


def _explain_losses(reason: Reason, progress: Sequence[CellProgress]) -> str:
    """Say what most cells were lost by, where that is why there is no verdict; else nothing (P43)."""
    match reason:
        case Reason.TOO_MANY_INFRA_ERRORS:
            causes = [cell.last_failure for cell in progress if cell.state is CellState.INFRA_ERRORED]
        case Reason.TOO_MANY_UNGRADED:
            causes = [cell.grade.reason for cell in progress if cell.grade is not None and cell.grade.score is None]
        case _:
            return ""
    return "".join(f": {cause}" for cause, _ in Counter(causes).most_common(1) if cause)


def _count_tool_errors(arm: Arm, progress: Sequence[CellProgress]) -> ToolErrors | None:
    """Return what failed in an arm's counting attempts; None where there is none, controls left out."""
    records = [
        cell.valid for cell in progress if cell.valid is not None and cell.key.control is None and cell.key.arm == arm
    ]
    if not records:
        return None
    return ToolErrors(
        agent=sum(record.agent_tool_errors for record in records),
        server=sum(record.server_tool_errors for record in records),
        infra=sum(record.infra_tool_errors for record in records),
        denied=sum(record.denied for record in records),
    )


def _render_arm(arm: ArmFigures, tool_errors: ToolErrors | None) -> ArmStatus:
    return ArmStatus(
        server=arm.arm.server,
        model=arm.arm.model,
        score=_render_interval(arm.score),
        standard_deviation=_render(arm.spread),
        deterministic=arm.score is not None and arm.score.deterministic,
        graded=arm.fates.get(CellFate.GRADED, 0),
        tool_calls=None if arm.tool_calls is None else f"{arm.tool_calls:.2f}",
        tool_errors=tool_errors,
        tokens=arm.tokens,
        usd=None if arm.usd is None else arm.usd.quantize(_CENT_FRACTION),
        seconds=None if arm.seconds is None else f"{arm.seconds:.2f}",
        consistency=_render(arm.consistency),
    )


def _render_comparison(each: Comparison, *, model_side: bool) -> ComparisonStatus:
    candidate, baseline = each.candidate, each.baseline
    return ComparisonStatus(
        model=None if model_side else candidate.model,
        server=candidate.server if model_side else None,
        baseline=baseline.model if model_side else baseline.server,
        candidate=candidate.model if model_side else candidate.server,
        pairs=each.pairs,
        delta=None if each.delta is None else _render(each.delta.mean),
        low=None if each.delta is None else _render(each.delta.low),
        high=None if each.delta is None else _render(each.delta.high),
        minimum_detectable=_render(each.minimum_detectable),
        p=_render(each.p),
        replicates_needed=each.replicates_needed,
    )


def _render_controls(scores: ControlScores) -> ControlsStatus:
    return ControlsStatus(oracle=_render(scores.oracle), noop=_render(scores.noop))


def _render_interval(interval: Interval | None) -> Estimate | None:
    if interval is None:
        return None
    return Estimate(mean=_round(interval.mean), low=_round(interval.low), high=_round(interval.high))


def _render(value: float | None) -> Decimal | None:
    return None if value is None else _round(value)


def _round(value: float) -> Decimal:
    # Adding zero turns a negative zero into a plain one.
    return Decimal(str(value)).quantize(_PLACES) + 0
