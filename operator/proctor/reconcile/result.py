"""A finished run's EvalRun and cells → the report that is printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proctor.api.run import AdaptiveStatus, AdaptiveStop, EvalRun, JudgeStatus
from proctor.api.suite import EvalSuiteSpec
from proctor.core.reports.run_cells import read_observation
from proctor.core.reports.table import ResultReport
from proctor.core.stats.comparisons import compare_arms
from proctor.core.stats.controls import worst_controls
from proctor.core.stats.figures import summarise_arms
from proctor.core.stats.observations import judged_only
from proctor.reconcile.rules import build_rules

_DIGEST_DIGITS = 12
"""Of the suite's digest, for the seed of resampling: the same as the run's own order, so figures agree."""


_STOPS: Mapping[AdaptiveStop, str] = {
    AdaptiveStop.SETTLED: "then the verdict was settled",
    AdaptiveStop.MAX_REPLICATES: "and the verdict is not settled",
    AdaptiveStop.HALTED: "then the run was ended",
}


def report_result(
    run: EvalRun, suite: EvalSuiteSpec, cells: Sequence[Mapping[str, Any]], *, directory: str = ""
) -> ResultReport:
    """Return what a finished run showed.

    Args:
        run: with its last status; the verdict is taken from it, never made anew.
        suite: as the run froze it.
        cells: as run.json has them.
        directory: where run.json is.
    """
    observations = [read_observation(cell) for cell in cells]
    judged = judged_only(observations)
    replicates = max((observation.cell.replicate for observation in judged), default=None)
    rules = build_rules(suite, seed=_seed(run), replicates=replicates)
    arms, by_scenario = summarise_arms(judged, rules)
    return ResultReport(
        run=run.metadata.name,
        verdict=run.status.verdict.value,
        reason=run.status.reason,
        summary=run.status.summary,
        arms=arms,
        by_scenario=by_scenario,
        comparisons=compare_arms(judged, arms, rules),
        controls=worst_controls(observations),
        baseline=rules.baseline,
        programmatic=suite.judge.anthropic is None,
        judge=_describe_judge(run.status.judge),
        growth=_describe_growth(run.status.adaptive),
        directory=directory,
    )


def _describe_judge(judge: JudgeStatus | None) -> str:
    if judge is None:
        return ""
    agreement = "" if judge.agreement is None else f", agreement {judge.agreement:.2f}"
    cost = "" if judge.usd is None else f", {judge.usd:.2f} USD"
    return f"judge {judge.model}, votes {judge.votes}{agreement}{cost}"


def _describe_growth(adaptive: AdaptiveStatus | None) -> str:
    if adaptive is None:
        return ""
    why = "" if adaptive.stopped is None else f", {_STOPS[adaptive.stopped]}"
    return (
        f"{adaptive.replicates} of at most {adaptive.max_replicates} replicates{why} "
        f"(block {adaptive.block} of {adaptive.blocks}); 95 % over all blocks"
    )


def _seed(run: EvalRun) -> int:
    digest = run.status.digests.suite
    return int(digest[:_DIGEST_DIGITS], 16) if digest else 0
