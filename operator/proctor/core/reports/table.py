"""The last thing a run prints: what each arm showed, how they differ, the verdict, and one sentence why.

At most `WIDTH` columns wide with names of ordinary length; colour only where the caller says the terminal wants it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proctor.core.ids import Arm
from proctor.core.reports.grid import Align, Grid, render_grid, width_of
from proctor.core.reports.inert import make_inert
from proctor.core.stats.observations import (
    SUCCESS_AT,
    ArmFigures,
    Baseline,
    CellFate,
    Comparison,
    ControlScores,
    Interval,
    Side,
)
from proctor.core.stats.wording import describe_bounds, describe_difference
from proctor.core.trajectory.outcome import Outcome

WIDTH = 100
_NONE = "–"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultReport:
    """A finished run, as its table has it.

    Attributes:
        run: the run's name.
        verdict: its word.
        reason: machine word.
        summary: one sentence.
        arms: figures per arm over all scenarios.
        by_scenario: figures per arm and scenario.
        comparisons: candidates beside the baseline.
        controls: the worst control scores.
        baseline: what the candidates are compared with; None without one.
        programmatic: no judge took part in the scores.
        judge: who did, and how far its votes agree; empty without one.
        growth: how many replicates were used, and why no more; empty for a run of a fixed size.
        directory: where run.json is; empty to leave it out.
    """

    run: str
    verdict: str
    reason: str
    summary: str
    arms: tuple[ArmFigures, ...]
    by_scenario: tuple[ArmFigures, ...]
    comparisons: tuple[Comparison, ...]
    controls: ControlScores
    baseline: Baseline | None
    programmatic: bool
    judge: str = ""
    growth: str = ""
    directory: str = ""


_COLOURS: Mapping[str, str] = {"Pass": "32", "Fail": "31", "Inconclusive": "33", "Error": "31", "Cancelled": "33"}

_WORDS: Mapping[Outcome, str] = {
    Outcome.COMPLETED: "completed",
    Outcome.GAVE_UP: "gave up",
    Outcome.TURN_LIMIT: "turn limit",
    Outcome.BUDGET_LIMIT: "budget",
    Outcome.TIME_LIMIT: "time limit",
    Outcome.AGENT_ERROR: "agent error",
    Outcome.INFRA_ERROR: "infra",
}

_FATES: Mapping[CellFate, str] = {
    CellFate.UNGRADED: "ungraded",
    CellFate.INFRA_ERRORED: "infra",
    CellFate.CANCELLED: "cancelled",
}


def render_result(report: ResultReport, *, colour: bool = False) -> str:
    """Render a finished run for a terminal."""
    lines: list[str] = []
    scenarios = list(dict.fromkeys(figures.scenario for figures in report.by_scenario))
    for scenario in scenarios:
        rows = [figures for figures in report.by_scenario if figures.scenario == scenario]
        lines += [_bold(str(scenario), colour=colour), *_render_arms(rows, report.baseline), ""]
    if len(scenarios) > 1:
        lines += [_bold("all scenarios", colour=colour), *_render_arms(report.arms, report.baseline), ""]
    if report.comparisons:
        lines += [*render_grid(_comparison_grid(report.comparisons)), ""]
    lines += _footnotes(report)
    verdict = _paint(report.verdict, _COLOURS.get(report.verdict, ""), colour=colour)
    lines.append(f"{verdict} ({report.reason}): {make_inert(report.summary)}")
    if report.directory:
        lines.append(f"run {report.run}: {report.directory}")
    return "\n".join(lines)


def _render_arms(rows: Sequence[ArmFigures], baseline: Baseline | None) -> list[str]:
    """Render the arms of one scenario; outcomes go below the table where they would make it too wide."""
    grid = _arm_grid(rows, baseline)
    lines = render_grid(grid)
    if max(map(width_of, lines)) <= WIDTH:
        return lines
    narrow = Grid(grid.titles[:-1], grid.aligns[:-1], tuple(row[:-1] for row in grid.rows))
    return [*render_grid(narrow), *(f"  {figures.arm}: {_outcomes(figures)}" for figures in rows)]


def _arm_grid(rows: Sequence[ArmFigures], baseline: Baseline | None) -> Grid:
    with_usd = any(figures.usd is not None for figures in rows)
    head = ("server", "model", "score", "calls", "tokens", *(("USD",) if with_usd else ()))
    titles = (*head, "time", "sd", "alike", "pass^3", "outcomes")
    aligns = (Align.LEFT, Align.LEFT, Align.LEFT, *[Align.RIGHT] * (len(titles) - 4), Align.LEFT)
    return Grid(titles, aligns, tuple(_arm_row(figures, baseline, with_usd=with_usd) for figures in rows))


def _arm_row(figures: ArmFigures, baseline: Baseline | None, *, with_usd: bool) -> tuple[str, ...]:
    usd = _NONE if figures.usd is None else f"{figures.usd:.2f}"
    return (
        _mark(figures.arm, baseline, Side.SERVER),
        _mark(figures.arm, baseline, Side.MODEL),
        _score(figures.score),
        _decimal(figures.tool_calls),
        _thousands(figures.tokens),
        *((usd,) if with_usd else ()),
        _NONE if figures.seconds is None else f"{figures.seconds:.1f} s",
        _decimal(figures.spread, places=2),
        _percent(figures.consistency),
        _percent(figures.pass_k),
        _outcomes(figures),
    )


def _comparison_grid(comparisons: Sequence[Comparison]) -> Grid:
    with_clusters = any(comparison.clustered is not None for comparison in comparisons)
    clusters = ("clustered",) if with_clusters else ()
    titles = ("compared", "vs", "difference", *clusters, "pairs", "detectable", "p", "sd ratio")
    aligns = (*[Align.LEFT] * (3 + len(clusters)), *[Align.RIGHT] * 4)
    return Grid(titles, aligns, tuple(_comparison_row(each, with_clusters=with_clusters) for each in comparisons))


def _comparison_row(comparison: Comparison, *, with_clusters: bool) -> tuple[str, ...]:
    clustered = _NONE if comparison.clustered is None else describe_bounds(*comparison.clustered)
    return (
        str(comparison.candidate),
        _other_side(comparison),
        _difference(comparison.delta),
        *((clustered,) if with_clusters else ()),
        str(comparison.pairs),
        _decimal(comparison.minimum_detectable, places=2),
        _decimal(comparison.p, places=2),
        _decimal(comparison.spread_ratio, places=2),
    )


def _other_side(comparison: Comparison) -> str:
    candidate, baseline = comparison.candidate, comparison.baseline
    return baseline.server if candidate.model == baseline.model else baseline.model


def _mark(arm: Arm, baseline: Baseline | None, side: Side) -> str:
    name = arm.server if side is Side.SERVER else arm.model
    return f"{name} *" if baseline is not None and baseline.marks(arm, side) else name


def _score(interval: Interval | None) -> str:
    if interval is None:
        return _NONE
    mean = f"{interval.mean:.2f}"
    if not interval.sized:
        return f"{mean} [?]"
    return f"{mean} exact" if interval.deterministic else f"{mean} [{interval.low:.2f}, {interval.high:.2f}]"


def _difference(interval: Interval | None) -> str:
    text = describe_difference(interval)
    return f"{text} exact" if interval is not None and interval.deterministic else text


def _outcomes(figures: ArmFigures) -> str:
    parts = [f"{count} {_WORDS[outcome]}" for outcome, count in sorted(figures.outcomes.items()) if count]
    # An infrastructure failure is both an outcome and a fate; it is told once.
    told = figures.outcomes.get(Outcome.INFRA_ERROR, 0)
    for fate, word in _FATES.items():
        count = figures.fates.get(fate, 0)
        if count and not (fate is CellFate.INFRA_ERRORED and told):
            parts.append(f"{count} {word}")
    return ", ".join(parts) or _NONE


def _footnotes(report: ResultReport) -> list[str]:
    oracle, noop = (_decimal(score, places=2) for score in (report.controls.oracle, report.controls.noop))
    notes = [f"controls: oracle {oracle}, noop {noop}"]
    if report.programmatic:
        notes.append("scores by checks alone, no judge")
    elif report.judge:
        notes.append(report.judge)
    if report.growth:
        notes.append(report.growth)
    if report.baseline is not None:
        notes.append("* baseline")
    if any(figures.score is not None and figures.score.deterministic for figures in report.by_scenario):
        notes.append("exact: scripted, replicates do not vary")
    if report.by_scenario:
        notes.append("alike: replicate pairs within 0.1")
        notes.append(f"pass^3: chance that 3 of 3 reach {SUCCESS_AT:.2f}")
    return textwrap.wrap("; ".join(notes), WIDTH)


def _decimal(value: float | None, *, places: int = 1) -> str:
    return _NONE if value is None else f"{value:.{places}f}"


def _percent(value: float | None) -> str:
    return _NONE if value is None else f"{value * 100:.0f} %"


def _thousands(tokens: int) -> str:
    if tokens < 10_000:  # noqa: PLR2004 - four digits are as short as "9.9 k" and exact
        return str(tokens)
    return f"{tokens / 1000:.0f} k" if tokens < 1_000_000 else f"{tokens / 1_000_000:.1f} M"  # noqa: PLR2004 - a million


def _bold(text: str, *, colour: bool) -> str:
    return _paint(text, "1", colour=colour)


def _paint(text: str, code: str, *, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour and code else text
