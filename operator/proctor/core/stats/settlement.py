"""Observations and rules → the verdict, its reason, and one sentence that says why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from proctor.core.stats.comparisons import compare_arms
from proctor.core.stats.controls import judge_controls, worst_controls
from proctor.core.stats.figures import summarise_arms
from proctor.core.stats.observations import (
    TINY,
    ArmFigures,
    CellFate,
    Comparison,
    GateRules,
    Interval,
    Judgement,
    Observation,
    Reason,
    Settlement,
    judged_only,
)
from proctor.core.stats.wording import describe_arm, describe_comparison, describe_losses


@dataclass(frozen=True, slots=True)
class _Finding:
    verdict: Judgement
    reason: Reason
    summary: str


def settle(observations: Iterable[Observation], rules: GateRules) -> Settlement:
    """Return the verdict of a finished run.

    Args:
        observations: one for every cell of the run, controls included.
        rules: what the run is held to.
    """
    every = list(observations)
    judged = judged_only(every)
    arms, by_scenario = summarise_arms(judged, rules)
    comparisons = compare_arms(judged, arms, rules)
    finding = _decide(every, rules, arms, comparisons)
    return Settlement(
        verdict=finding.verdict,
        reason=finding.reason,
        summary=finding.summary,
        arms=arms,
        by_scenario=by_scenario,
        comparisons=comparisons,
        controls=worst_controls(every),
    )


def _decide(
    every: Sequence[Observation],
    rules: GateRules,
    arms: Sequence[ArmFigures],
    comparisons: Sequence[Comparison],
) -> _Finding:
    judged = judged_only(every)
    control = judge_controls(every, rules)
    if control is not None:
        return _Finding(control.verdict, control.reason, control.summary)
    over = _check_budgets(judged, rules)
    if over is not None:
        return over
    finding = _judge(arms, comparisons, rules)
    if finding.verdict is Judgement.PASS and not _holds_with_zeros(judged, rules):
        ungraded = sum(each.fate is CellFate.UNGRADED for each in judged)
        text = f"{ungraded} ungraded cells counted as 0 would change the verdict; {finding.summary}"
        finding = _Finding(Judgement.INCONCLUSIVE, Reason.UNGRADED_DECIDE, text)
    return replace(finding, summary=finding.summary + describe_losses(every))


def _check_budgets(judged: Sequence[Observation], rules: GateRules) -> _Finding | None:
    total = len(judged)
    budgets = (
        (CellFate.INFRA_ERRORED, rules.max_infra_percent, Reason.TOO_MANY_INFRA_ERRORS, "were lost to infrastructure"),
        (CellFate.UNGRADED, rules.max_ungraded_percent, Reason.TOO_MANY_UNGRADED, "have no grade"),
    )
    for fate, percent, reason, what in budgets:
        lost = sum(each.fate is fate for each in judged)
        if lost * 100 > percent * total:
            return _Finding(Judgement.ERROR, reason, f"{lost} of {total} cells {what}, more than {percent} %")
    return None


def _holds_with_zeros(judged: Sequence[Observation], rules: GateRules) -> bool:
    """Say whether the run also passes with the candidates' ungraded cells counted as 0 (grading rule 7b)."""
    zeroed = [
        replace(each, fate=CellFate.GRADED, score=0.0)
        if each.fate is CellFate.UNGRADED and rules.is_candidate(each.cell.arm)
        else each
        for each in judged
    ]
    if zeroed == list(judged):
        return True
    arms, _ = summarise_arms(zeroed, rules)
    return _judge(arms, compare_arms(zeroed, arms, rules), rules).verdict is Judgement.PASS


def _judge(arms: Sequence[ArmFigures], comparisons: Sequence[Comparison], rules: GateRules) -> _Finding:
    candidates = [arm for arm in arms if rules.is_candidate(arm.arm)]
    drops = comparisons if rules.max_drop is not None else ()
    failed = _find_failure(candidates, drops, rules)
    if failed is not None:
        return failed
    open_question = _find_open(candidates, drops, rules)
    if open_question is not None:
        return open_question
    summary = _describe_closest(candidates, comparisons)
    if rules.minimum is None and rules.max_drop is None:
        return _Finding(Judgement.PASS, Reason.MEASURED_ONLY, summary)
    if rules.minimum is not None and drops:
        return _Finding(Judgement.PASS, Reason.WITHIN_LIMITS, summary)
    reason = Reason.WITHIN_MAX_DROP if drops else Reason.ABOVE_MINIMUM
    return _Finding(Judgement.PASS, reason, summary)


def _find_failure(candidates: Sequence[ArmFigures], drops: Sequence[Comparison], rules: GateRules) -> _Finding | None:
    for drop in sorted(drops, key=_upper):
        if drop.delta is not None and drop.delta.high < -_given(rules.max_drop) - TINY:
            text = f"{describe_comparison(drop)}, below −{_given(rules.max_drop):.2f}"
            return _Finding(Judgement.FAIL, Reason.MAX_DROP_EXCEEDED, text)
    if rules.minimum is not None:
        for arm in candidates:
            if arm.score is not None and arm.score.high < rules.minimum - TINY:
                text = f"{describe_arm(arm)}, below the minimum {rules.minimum:.2f}"
                return _Finding(Judgement.FAIL, Reason.BELOW_MINIMUM, text)
    return None


def _find_open(candidates: Sequence[ArmFigures], drops: Sequence[Comparison], rules: GateRules) -> _Finding | None:
    if rules.baseline_missing and rules.minimum is None:
        text = "no earlier run passed, so there is no baseline, and no minimum is set"
        return _Finding(Judgement.INCONCLUSIVE, Reason.NO_BASELINE, text)
    if not candidates:
        return _Finding(Judgement.INCONCLUSIVE, Reason.TOO_FEW_REPLICATES, "no candidate has a cell")
    for drop in drops:
        if not _is_sized(drop.delta):
            text = f"{describe_comparison(drop)}: too few pairs for an interval"
            return _Finding(Judgement.INCONCLUSIVE, Reason.TOO_FEW_REPLICATES, text)
    if rules.minimum is not None:
        for arm in candidates:
            if not _is_sized(arm.score):
                text = f"{describe_arm(arm)}: too few scores for an interval"
                return _Finding(Judgement.INCONCLUSIVE, Reason.TOO_FEW_REPLICATES, text)
    return _find_wide(candidates, drops, rules)


def _find_wide(candidates: Sequence[ArmFigures], drops: Sequence[Comparison], rules: GateRules) -> _Finding | None:
    for drop in sorted(drops, key=_lower):
        if drop.delta is not None and drop.delta.low < -_given(rules.max_drop) - TINY:
            needed = f"; about {drop.replicates_needed} replicates would settle it" if drop.replicates_needed else ""
            text = f"{describe_comparison(drop)}, the interval spans −{_given(rules.max_drop):.2f}{needed}"
            return _Finding(Judgement.INCONCLUSIVE, Reason.INTERVAL_TOO_WIDE, text)
    if rules.minimum is not None:
        for arm in candidates:
            if arm.score is not None and arm.score.low < rules.minimum - TINY:
                text = f"{describe_arm(arm)}, the interval spans the minimum {rules.minimum:.2f}"
                return _Finding(Judgement.INCONCLUSIVE, Reason.INTERVAL_TOO_WIDE, text)
    return None


def _describe_closest(candidates: Sequence[ArmFigures], comparisons: Sequence[Comparison]) -> str:
    """Describe what came closest to failing: the reader's first question about a pass."""
    measured = [comparison for comparison in comparisons if comparison.delta is not None]
    if measured:
        others = f"{len(measured)} comparisons, the closest: " if len(measured) > 1 else ""
        return others + describe_comparison(min(measured, key=_lower))
    scored = [arm for arm in candidates if arm.score is not None]
    if not scored:
        return "no cell has a score"
    return describe_arm(min(scored, key=lambda arm: arm.score.low if arm.score else 0.0))


def _is_sized(interval: Interval | None) -> bool:
    return interval is not None and interval.sized


def _lower(comparison: Comparison) -> float:
    return comparison.delta.low if comparison.delta else -1.0


def _upper(comparison: Comparison) -> float:
    return comparison.delta.high if comparison.delta else 1.0


def _given(threshold: float | None) -> float:
    if threshold is None:
        raise AssertionError("drops are only looked at where maxDrop is given")
    return threshold
