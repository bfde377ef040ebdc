"""The page's tables, row by row, as the templates print them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from proctor.core.ids import Arm
from proctor.core.reports.page import numbers
from proctor.core.reports.page.facts import CellFacts, RunFacts
from proctor.core.reports.page.plots import Axis, Bar, difference_axis, place_interval, score_axis
from proctor.core.stats.observations import TINY, ArmFigures, CellFate, Comparison, Interval
from proctor.core.stats.tools import ToolFigures
from proctor.core.stats.wording import describe_bounds, describe_difference
from proctor.core.trajectory.events import Status
from proctor.core.trajectory.outcome import Outcome

MOST_TOOLS = 300
"""Rows of the tools' table: an agent may call a thousand tools that don't exist."""
_MOST_CLASSES = 6

_WHOSE: tuple[tuple[Status, str], ...] = (
    (Status.AGENT_ERROR, "agent"),
    (Status.SERVER_ERROR, "server"),
    (Status.INFRA_ERROR, "infrastructure"),
    (Status.DENIED, "denied"),
)


@dataclass(frozen=True, slots=True)
class ArmName:
    """An arm, and whether it is what others are compared with."""

    name: str
    baseline: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """How an interval lies to a limit.

    Attributes:
        words: the whole of it.
        sign: the same for the style: good, bad, open, or nothing.
    """

    words: str
    sign: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """What an arm scored, in one scenario or in all.

    Attributes:
        standing: how the interval lies to the minimum.
    """

    arm: ArmName
    score: str
    interval: str
    bar: Bar | None
    standing: Standing
    count: int
    spread: str
    consistency: str
    pass_k: str


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """The arms of one scenario, or of all."""

    title: str
    rows: tuple[ScoreRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceRow:
    """A candidate beside its baseline."""

    candidate: str
    baseline: str
    delta: str
    bar: Bar | None
    standing: Standing
    pairs: int
    clustered: str
    p: str
    detectable: str
    spread_ratio: str
    needed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow:
    """What a tool of an arm did."""

    arm: ArmName
    tool: str
    calls: int
    failed: str
    rate: str
    classes: str
    p95: str
    bytes: str
    adoption: str
    given_up: str


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """How an arm's cells ended."""

    arm: ArmName
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OutcomeTable:
    """How cells ended, and what became of them: a column for each way that occurred."""

    columns: tuple[str, ...]
    rows: tuple[OutcomeRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """What an arm took."""

    arm: ArmName
    cells: int
    calls: str
    turns: str
    input_tokens: str
    output_tokens: str
    tokens_per_cell: str
    usd: str
    usd_per_cell: str
    seconds: str
    longest: str


def name_arm(run: RunFacts, arm: Arm) -> ArmName:
    """Return an arm's name, and whether it is on the baseline's side."""
    baseline = run.result.baseline
    return ArmName(str(arm), baseline is not None and baseline.holds(arm))


def tabulate_scores(run: RunFacts) -> tuple[ScoreTable, ...]:
    """Return the arms over all scenarios, and in each if there are several."""
    axis = score_axis(run.limits.minimum)
    values: dict[tuple[Arm, str | None], list[float]] = defaultdict(list)
    for cell in run.judged_cells:
        if cell.score is not None:
            values[cell.key.arm, cell.key.scenario].append(float(cell.score))
            values[cell.key.arm, None].append(float(cell.score))
    overall = ScoreTable("All scenarios", _score_rows(run, run.result.arms, axis, values))
    scenarios = list(dict.fromkeys(figures.scenario for figures in run.result.by_scenario))
    tables = [] if len(scenarios) == 1 else [overall]
    for scenario in scenarios:
        figures = [each for each in run.result.by_scenario if each.scenario == scenario]
        tables.append(ScoreTable(str(scenario), _score_rows(run, figures, axis, values)))
    return tuple(table for table in tables if table.rows)


def _score_rows(
    run: RunFacts, arms: Sequence[ArmFigures], axis: Axis, values: dict[tuple[Arm, str | None], list[float]]
) -> tuple[ScoreRow, ...]:
    return tuple(
        ScoreRow(
            arm=name_arm(run, each.arm),
            score=numbers.NONE if each.score is None else numbers.render_score(each.score.mean),
            interval=_describe_ends(each.score),
            bar=place_interval(axis, each.score, values.get((each.arm, each.scenario), ())),
            standing=_stand_to_minimum(run, each),
            count=0 if each.score is None else each.score.count,
            spread=numbers.render_score(each.spread),
            consistency=numbers.render_share(each.consistency),
            pass_k=numbers.render_share(each.pass_k),
        )
        for each in arms
    )


def _describe_ends(interval: Interval | None) -> str:
    if interval is None:
        return ""
    if not interval.sized:
        return "too few to say"
    return "exact" if interval.deterministic else f"{interval.low:.2f} – {interval.high:.2f}"


def _stand_to_minimum(run: RunFacts, figures: ArmFigures) -> Standing:
    minimum, score = run.limits.minimum, figures.score
    if minimum is None or score is None:
        return Standing(numbers.NONE)
    if name_arm(run, figures.arm).baseline:
        return Standing("not held to it")
    if score.high < minimum - TINY:
        return Standing("below it", "bad")
    return Standing("spans it", "open") if score.low < minimum - TINY else Standing("above it", "good")


def tabulate_differences(run: RunFacts) -> tuple[Axis, tuple[DifferenceRow, ...]]:
    """Return candidates beside their baselines with the difference of every pair, and the axis they are drawn on."""
    scores: dict[Arm, dict[tuple[str, int], float]] = defaultdict(dict)
    for cell in run.judged_cells:
        if cell.score is not None:
            scores[cell.key.arm][cell.key.scenario, cell.key.replicate] = float(cell.score)
    comparisons = run.result.comparisons
    pairs = [_subtract(scores[each.candidate], scores[each.baseline]) for each in comparisons]
    intervals = [each.delta for each in comparisons if each.delta is not None]
    axis = difference_axis(intervals, [value for values in pairs for value in values], run.limits.max_drop)
    return axis, tuple(
        _difference_row(each, place_interval(axis, each.delta, values), run.limits.max_drop)
        for each, values in zip(comparisons, pairs, strict=True)
    )


def _subtract(candidate: Mapping[tuple[str, int], float], baseline: Mapping[tuple[str, int], float]) -> list[float]:
    return [score - baseline[place] for place, score in candidate.items() if place in baseline]


def _difference_row(each: Comparison, bar: Bar | None, max_drop: float | None) -> DifferenceRow:
    exact = each.delta is not None and each.delta.deterministic
    return DifferenceRow(
        candidate=str(each.candidate),
        baseline=str(each.baseline),
        delta=describe_difference(each.delta) + (" exact" if exact else ""),
        bar=bar,
        standing=_stand_to_drop(each.delta, max_drop),
        pairs=each.pairs,
        clustered=numbers.NONE if each.clustered is None else describe_bounds(*each.clustered),
        p=numbers.render_chance(each.p),
        detectable=numbers.render_score(each.minimum_detectable),
        spread_ratio=numbers.render_score(each.spread_ratio),
        needed=numbers.NONE if each.replicates_needed is None else str(each.replicates_needed),
    )


def _stand_to_drop(delta: Interval | None, max_drop: float | None) -> Standing:
    if delta is None:
        return Standing("no pair")
    if max_drop is None:
        return Standing("no limit")
    if delta.high < -max_drop - TINY:
        return Standing("beyond the limit", "bad")
    if delta.low < -max_drop - TINY or not delta.sized:
        return Standing("spans the limit", "open")
    return Standing("within the limit", "good")


def tabulate_tools(run: RunFacts) -> tuple[ToolRow, ...]:
    """Return what each tool of each arm did; at most `MOST_TOOLS`, the most used ones."""
    chosen = run.tools
    if len(chosen) > MOST_TOOLS:
        kept = set(sorted(range(len(chosen)), key=lambda index: -chosen[index].calls)[:MOST_TOOLS])
        chosen = tuple(figures for index, figures in enumerate(chosen) if index in kept)
    order = {figures.arm: place for place, figures in enumerate(run.result.arms)}
    ordered = sorted(chosen, key=lambda figures: order.get(figures.arm, len(order)))
    return tuple(_tool_row(run, figures) for figures in ordered)


def _tool_row(run: RunFacts, figures: ToolFigures) -> ToolRow:
    failed = [f"{figures.statuses[status]} {whose}" for status, whose in _WHOSE if figures.statuses.get(status)]
    classes = sorted(figures.errors.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{name[:80]} {count}" for name, count in classes[:_MOST_CLASSES]]
    rest = len(classes) - len(shown)
    return ToolRow(
        arm=name_arm(run, figures.arm),
        tool=figures.tool[:120],
        calls=figures.calls,
        failed=", ".join(failed) or "0",
        rate=numbers.render_share(figures.error_rate()),
        classes=", ".join(shown) + (f", {rest} more" if rest else "") or numbers.NONE,
        p95=numbers.render_milliseconds(figures.p95_ms),
        bytes=numbers.render_bytes(figures.result_bytes),
        adoption=numbers.render_share(figures.adoption),
        given_up=f"{figures.given_up_in} of {figures.used_in}",
    )


def tabulate_outcomes(run: RunFacts) -> OutcomeTable:
    """Return how cells ended per arm, and what became of those without a score."""
    outcomes = [outcome for outcome in Outcome if any(each.outcomes.get(outcome) for each in run.result.arms)]
    fates = [
        fate
        for fate in CellFate
        if fate is not CellFate.GRADED and any(each.fates.get(fate) for each in run.result.arms)
    ]
    columns = [outcome.value.replace("_", " ") for outcome in outcomes]
    columns += [fate.value.replace("_", " ") for fate in fates]
    rows = tuple(
        OutcomeRow(
            name_arm(run, each.arm),
            (*(each.outcomes.get(outcome, 0) for outcome in outcomes), *(each.fates.get(fate, 0) for fate in fates)),
        )
        for each in run.result.arms
    )
    return OutcomeTable(tuple(columns), rows)


def tabulate_costs(run: RunFacts) -> tuple[CostRow, ...]:
    """Return what each arm took: calls, tokens, money, time."""
    cells: dict[Arm, list[CellFacts]] = defaultdict(list)
    for cell in run.judged_cells:
        if cell.outcome is not None:
            cells[cell.key.arm].append(cell)
    return tuple(_cost_row(run, each, cells.get(each.arm, [])) for each in run.result.arms)


def _cost_row(run: RunFacts, figures: ArmFigures, cells: Sequence[CellFacts]) -> CostRow:
    count = len(cells)
    return CostRow(
        arm=name_arm(run, figures.arm),
        cells=count,
        calls=numbers.render_mean(figures.tool_calls),
        turns=numbers.render_mean(sum(cell.turns for cell in cells) / count if count else None),
        input_tokens=numbers.render_count(sum(cell.input_tokens for cell in cells)),
        output_tokens=numbers.render_count(sum(cell.output_tokens for cell in cells)),
        tokens_per_cell=numbers.render_count(figures.tokens // count if count else None),
        usd=numbers.render_usd(figures.usd),
        usd_per_cell=numbers.render_usd(figures.usd / Decimal(count) if figures.usd is not None and count else None),
        seconds=numbers.render_duration(figures.seconds),
        longest=numbers.render_duration(max((cell.seconds for cell in cells), default=None)),
    )


def list_lost(run: RunFacts) -> tuple[CellFacts, ...]:
    """Return the cells without a score, in order."""
    return tuple(cell for cell in run.cells if cell.score is None)


def count_replicates(run: RunFacts) -> str:
    """Say how many replicates there were, and why so many."""
    per_place = Counter((cell.key.scenario, cell.key.arm) for cell in run.judged_cells)
    low, high = min(per_place.values(), default=0), max(per_place.values(), default=0)
    used = str(high) if low == high else f"{low} to {high}"
    if run.limits.max_replicates is None:
        return used
    return f"{used}; the suite starts with {run.limits.replicates} and adds up to {run.limits.max_replicates}"
