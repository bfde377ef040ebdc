"""What a verdict means, and what to do next: in words, one entry per reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.core.reports.page.facts import CellFacts
from proctor.core.reports.table import ResultReport
from proctor.core.stats.observations import CellFate, Comparison


@dataclass(frozen=True, slots=True)
class Hint:
    """Something to do.

    Attributes:
        text: what and why.
        command: what to type; empty where nothing is.
        cell: the cell to look at; empty where none is.
    """

    text: str
    command: str = ""
    cell: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """What a verdict means, and what may be done about it."""

    meaning: str
    hints: tuple[Hint, ...]


_MEANINGS: dict[str, str] = {
    "WithinMaxDrop": "Even at the lower end of the interval no candidate is worse than the baseline by more than the "
    "gate allows.",
    "AboveMinimum": "Even the lower end of every candidate's interval reaches the minimum.",
    "WithinLimits": "Even at the lower end of the interval every candidate reaches the minimum and stays within the "
    "allowed drop.",
    "MeasuredOnly": "The suite sets no limit, so this run measures and blocks nothing.",
    "MaxDropExceeded": "Even at the upper end of the interval a candidate is worse than the baseline by more than the "
    "gate allows: chance does not explain it.",
    "BelowMinimum": "Even the upper end of a candidate's interval is below the minimum: chance does not explain it.",
    "ControlRegression": "Known-good queries find the incident through the baseline and not through the candidate: the "
    "server itself broke, whatever agents make of it.",
    "IntervalTooWide": "The limit lies inside the interval: this many replicates can't tell whether it holds.",
    "TooFewReplicates": "A scenario has too few scores to say anything about chance.",
    "UngradedDecide": "The scores pass, but not if the candidate's ungraded cells were zeros: what has no grade could "
    "decide it.",
    "NoBaseline": "The suite compares with the last run that passed, and there is none yet.",
    "OracleBelowFloor": "The known-good answer did not score as it must, so no score of this run can be trusted.",
    "NoopAboveCeiling": "An empty answer scored, so no score of this run can be trusted.",
    "ControlsNotMeasured": "A control has no score, so nothing shows that this run's instrument works.",
    "TooManyInfraErrors": "Too many cells were lost to infrastructure for the rest to speak for all.",
    "TooManyUngraded": "Too many cells have no grade for the rest to speak for all.",
    "JudgeNotTrusted": "The judge could not tell planted right answers from wrong ones, so no agent was started.",
    "ServerNotReady": "A server under test did not start or did not list its tools, so no agent was started.",
    "DeadlineExceeded": "The run was not over when its deadline passed.",
    "DigestChanged": "Something that was fixed before the first cell changed in the middle of the run.",
    "CancelRequested": "Somebody ended the run; what was measured until then is kept, and decides nothing.",
}

_BY_VERDICT: dict[str, str] = {
    "Pass": "The gate's limits hold.",
    "Fail": "The gate's limits do not hold.",
    "Inconclusive": "The evidence does not settle whether the gate's limits hold.",
    "Error": "The run could not be carried out or can't be trusted: this says nothing about any server or model.",
    "Cancelled": "The run was ended by request.",
    "Pending": "The run is not over; what is below may still change.",
}

_LOGS = frozenset({"ServerNotReady", "GatewayFailed", "GraderFailed", "SeedingFailed", "DatasetUnavailable"})


def advise(result: ResultReport, cells: Sequence[CellFacts], *, suite_file: str = "suite.yaml") -> Advice:
    """Return what a run's verdict means and what to do next.

    Args:
        result: of the run.
        cells: the run's.
        suite_file: the suite's file, as commands have to name it; a usual name where nobody knows it.
    """
    meaning = _MEANINGS.get(result.reason) or _BY_VERDICT.get(result.verdict, "")
    return Advice(meaning, (*_hints_for(result, cells, suite_file), *_hints_for_losses(cells, result.reason)))


def _hints_for(result: ResultReport, cells: Sequence[CellFacts], suite_file: str) -> tuple[Hint, ...]:
    match result.verdict:
        case "Pass":
            return _after_pass(result)
        case "Fail":
            return _after_fail(result, cells)
        case "Inconclusive":
            return _after_inconclusive(result, suite_file)
        case "Pending":
            return (Hint("Resume it: the same command goes on where it ended.", f"proctor run {suite_file}"),)
        case "Cancelled":
            return (Hint("Start anew when it is wanted.", f"proctor run {suite_file} --new"),)
        case _:
            return _after_error(result.reason, suite_file)


def _after_pass(result: ResultReport) -> tuple[Hint, ...]:
    if result.reason == "MeasuredOnly":
        return (Hint("Set gate.minimum, or a baseline with gate.maxDrop, for a run that decides something."),)
    costly = _costliest(result)
    hints = (Hint("Nothing has to be done: merge, or roll out."),)
    return (*hints, Hint(costly)) if costly else hints


def _costliest(result: ResultReport) -> str:
    """Name the candidate that needs far more tokens than its baseline for the same work; empty if none does."""
    tokens = {figures.arm: figures.tokens for figures in result.arms}
    ratios = [
        (tokens[each.candidate] / tokens[each.baseline], each)
        for each in result.comparisons
        if tokens.get(each.baseline) and tokens.get(each.candidate)
    ]
    if not ratios:
        return ""
    ratio, each = max(ratios, key=lambda item: item[0])
    noticeable = 1.25
    if ratio < noticeable:
        return ""
    return f"Scores hold, at a price: {each.candidate} took {ratio:.1f} times the tokens of {each.baseline}."


def _after_fail(result: ResultReport, cells: Sequence[CellFacts]) -> tuple[Hint, ...]:
    worst = _worst_cell(result, cells)
    hints = []
    if result.reason == "ControlRegression":
        hints.append(Hint("Look at the oracle's cells: each of its calls is a query that works through the baseline."))
    else:
        hints.append(Hint("Look at the candidate's lowest cells first: which marks are missing, and after which call."))
    if worst:
        hints.append(Hint("The lowest is", cell=worst))
    hints.append(Hint("Then at Tools: errors by class, and tools given up after an error, are the usual causes."))
    return tuple(hints)


def _after_inconclusive(result: ResultReport, suite_file: str) -> tuple[Hint, ...]:
    if result.reason == "NoBaseline":
        return (Hint("Set gate.minimum for the first run, or name a server or model of the suite as baseline."),)
    if result.reason == "UngradedDecide":
        return (Hint("See why these cells have no grade: an agent must not be able to hide that way."),)
    if result.reason == "TooFewReplicates":
        return (Hint("Raise replicates; ask how many a drop needs.", f"proctor plan {suite_file}"),)
    needed = max((each.replicates_needed or 0 for each in result.comparisons), default=0)
    if needed:
        text = f"About {needed} replicates would settle it."
        return (Hint(text, f"proctor run {suite_file} --replicates {needed}"),)
    return (Hint("Ask how many replicates a drop of that size needs.", f"proctor plan {suite_file} --from last"),)


def _after_error(reason: str, suite_file: str) -> tuple[Hint, ...]:
    hints: tuple[Hint, ...]
    match reason:
        case "JudgeNotTrusted":
            hints = (Hint("Choose another judge; the sentence above has the three scores it gave."),)
        case "OracleBelowFloor" | "NoopAboveCeiling" | "ControlsNotMeasured":
            hints = (Hint("Open the control's cell: its marks say which check is out of line."),)
        case "TooManyUngraded":
            hints = (Hint("See why cells have no grade; a judge that fails is asked again by a new run."),)
        case "DeadlineExceeded":
            hints = (Hint("Raise limits.activeDeadlineSeconds, or let more cells run at once (parallelism)."),)
        case _ if reason in _LOGS:
            hints = (Hint("The logs of the run's processes are beside its run.json, in logs/."),)
        case _:
            hints = (Hint("Ask what this machine lacks.", "proctor doctor"),)
    return (*hints, Hint("Then run it anew.", f"proctor run {suite_file} --new"))


def _hints_for_losses(cells: Sequence[CellFacts], reason: str) -> tuple[Hint, ...]:
    lost = [cell for cell in cells if cell.state in {CellFate.UNGRADED, CellFate.INFRA_ERRORED}]
    if not lost or reason in {"UngradedDecide", "TooManyUngraded"}:
        return ()
    have = "cell has" if len(lost) == 1 else "cells have"
    return (Hint(f"{len(lost)} {have} no score; the reasons are listed under Cells without a score."),)


def _worst_cell(result: ResultReport, cells: Sequence[CellFacts]) -> str:
    """Return the lowest cell of a candidate that is worse than its baseline; empty without one."""
    candidates = {each.candidate for each in result.comparisons if _is_worse(each)}
    scored = [
        (cell.score, str(cell.key))
        for cell in cells
        if cell.key.control is None and cell.score is not None and (not candidates or cell.key.arm in candidates)
    ]
    return min(scored)[1] if scored else ""


def _is_worse(comparison: Comparison) -> bool:
    return comparison.delta is not None and comparison.delta.mean < 0
