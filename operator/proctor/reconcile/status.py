"""The status of a run, built from what was seen: one patch, counts that always add up, and no more than fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from proctor.api.run import CellCounts, EvalRunStatus, Failure, JudgeStatus, Outcomes, RunDigests, Verdict
from proctor.core.trajectory.outcome import Outcome
from proctor.reconcile.conditions import Standing, build_conditions
from proctor.reconcile.extending import build_adaptive
from proctor.reconcile.fixing import is_complete, is_fixed, read_digests
from proctor.reconcile.look import Look
from proctor.reconcile.phases import derive_phase
from proctor.reconcile.progress import CellProgress, CellState, count_outcomes, count_states
from proctor.reconcile.settling import Findings

MAX_SUMMARY = 256
MAX_FAILURES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """What a run's status says about its outcome; Pending while it goes on."""

    verdict: Verdict
    reason: str
    summary: str


def build_status(look: Look, sentence: Sentence, findings: Findings | None) -> EvalRunStatus:
    """Return the whole status of this pass; figures appear with the verdict, not before."""
    run, observed, progress = look.run, look.observed, look.progress
    terminal = sentence.verdict is not Verdict.PENDING
    before = run.status
    counts = build_counts(progress, terminal=terminal)
    summary = cut_line(sentence.summary)
    standing = Standing(
        verdict=sentence.verdict,
        enforcement=run.suite.gate.enforcement,
        reason=sentence.reason,
        summary=summary,
        suspended=run.suspend,
        seeded=look.seeded,
        isolation=observed.isolation,
        cells_may_start=look.prepared and not run.suspend,
        graded=counts.running == 0 and counts.pending == 0,
    )
    return EvalRunStatus(
        observed_generation=run.generation,
        verdict=sentence.verdict,
        enforcement=run.suite.gate.enforcement,
        reason=sentence.reason,
        summary=summary,
        phase=derive_phase(look, terminal=terminal),
        started=before.started or look.now,
        ended=look.now if terminal else None,
        digests=_fix_digests(look),
        images=dict(run.images),
        cells=counts,
        outcomes=_build_outcomes(progress),
        adaptive=build_adaptive(run, progress, sentence.verdict),
        arms=before.arms if findings is None else findings.arms,
        comparisons=before.comparisons if findings is None else findings.comparisons,
        controls=before.controls if findings is None else findings.controls,
        judge=before.judge if findings is None else _build_judge(look),
        top_failures=_build_failures(progress),
        conditions=build_conditions(standing, before.conditions, generation=run.generation, now=look.now),
    )


def build_counts(progress: Sequence[CellProgress], *, terminal: bool) -> CellCounts:
    """Count every cell once; in a terminal run nothing is running or pending any more (P29)."""
    states = count_states(progress)
    open_cells = states[CellState.RUNNING] + states[CellState.PENDING]
    return CellCounts(
        total=len(progress),
        graded=states[CellState.GRADED],
        # A valid attempt that no grade came for is not the agent's zero.
        ungraded=states[CellState.UNGRADED] + (states[CellState.GRADING] if terminal else 0),
        infra_errored=states[CellState.INFRA_ERRORED],
        cancelled=open_cells if terminal else 0,
        running=0 if terminal else states[CellState.RUNNING] + states[CellState.GRADING],
        pending=0 if terminal else states[CellState.PENDING],
    )


def cut_line(text: str) -> str:
    """Return text as one line that fits into the status, its control characters gone."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if len(line) <= MAX_SUMMARY else line[: MAX_SUMMARY - 1] + "…"


def _fix_digests(look: Look) -> RunDigests:
    if is_fixed(look.run):
        return look.run.status.digests
    seen = read_digests(look.run, look.observed)
    return seen if look.prepared and is_complete(look.run, seen) else RunDigests()


def _build_judge(look: Look) -> JudgeStatus | None:
    judge, grader = look.run.suite.judge, look.observed.grader
    if judge.anthropic is None:
        return None
    return JudgeStatus(
        model=judge.anthropic.model,
        votes=judge.vote_count,
        agreement=grader.agreement,
        input_tokens=grader.judge_tokens[0],
        output_tokens=grader.judge_tokens[1],
        usd=grader.judge_usd,
    )


def _build_outcomes(progress: Sequence[CellProgress]) -> Outcomes:
    counts = count_outcomes(progress)
    return Outcomes(
        **{outcome.value: count for outcome, count in counts.items()},
        infra_error=sum(1 for cell in progress if cell.state is CellState.INFRA_ERRORED),
    )


def _build_failures(progress: Sequence[CellProgress]) -> tuple[Failure, ...]:
    """Return the worst cells: lost ones first, then ungraded ones, then the lowest scores that are not perfect."""
    ranked = sorted(
        ((rank, str(cell.key), cell) for cell in progress if (rank := _rank_failure(cell)) is not None),
        key=lambda item: item[:2],
    )
    return tuple(_describe_failure(cell) for _, _, cell in ranked[:MAX_FAILURES])


def _rank_failure(cell: CellProgress) -> tuple[int, Decimal] | None:
    """Return where a cell stands among the failures, the worst lowest; None for a cell that is none."""
    match cell.state:
        case CellState.INFRA_ERRORED:
            return 0, Decimal(0)
        case CellState.UNGRADED:
            return 1, Decimal(0)
        case CellState.GRADED if cell.key.control is None:  # a noop's zero is what it is for
            score = None if cell.grade is None else cell.grade.score
            return None if score is None or score >= 1 else (2, score)
        case _:
            return None


def _describe_failure(cell: CellProgress) -> Failure:
    if cell.valid is None:
        return Failure(cell=str(cell.key), outcome=Outcome.INFRA_ERROR, message=cut_line(cell.last_failure))
    ungraded = cell.grade is not None and cell.grade.score is None
    return Failure(
        cell=str(cell.key),
        score=None if cell.grade is None else cell.grade.score,
        outcome=cell.valid.outcome,
        message=cut_line(cell.grade.reason if ungraded and cell.grade is not None else cell.valid.reason),
    )
