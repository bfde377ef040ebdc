"""Two compared runs as text for a terminal; what agents, servers and manifests call things is shown and never acts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from proctor.core.reports.grid import Align, Grid, render_grid
from proctor.core.reports.inert import make_inert
from proctor.core.reports.run_comparison import ArmComparison, RunComparison, RunSide, ToolChange
from proctor.core.reports.run_inputs import InputChange, Weight
from proctor.core.reports.table import WIDTH
from proctor.core.stats.tools import ToolFigures
from proctor.core.stats.wording import describe_difference, describe_interval
from proctor.core.trajectory.outcome import Outcome

MOST_ROWS = 20
"""Of a table whose rows are as many as cells; all of them are in the JSON."""

_NONE = "–"
_SIGNS: Mapping[Weight, str] = {Weight.BREAKS: "!", Weight.CHANGED: "~", Weight.HARMLESS: " "}
_NOT_COMPARABLE = (
    "NOT COMPARABLE: what is marked ! means that scores were made from another incident or by another measure; "
    "their differences say nothing about the agents."
)
_PAIRING = "cells are paired by scenario, server, model and replicate"


def render_comparison(comparison: RunComparison) -> str:
    """Render a comparison, inputs first."""
    lines = [*_render_head(comparison), "", *_render_pairing(comparison)]
    tables = (
        ("", _render_arms(comparison.arms)),
        ("outcomes that changed", _render_outcomes(comparison.arms)),
        ("marks that changed", _render_marks(comparison)),
        (f"cells that changed: {len(comparison.cells)} of {comparison.pairs} pairs", _render_cells(comparison)),
        ("tools", _render_tools(comparison.tools)),
    )
    for title, table in tables:
        if table:
            lines += ["", *([title] if title else []), *table]
    lines += [f"note: {note}" for note in comparison.notes]
    return "\n".join(make_inert(line) for line in lines)


def _render_head(comparison: RunComparison) -> Iterator[str]:
    for letter, side in (("A", comparison.before), ("B", comparison.after)):
        yield f"{letter}  {_describe_side(side)}"
    yield ""
    if not comparison.inputs:
        yield "inputs: the same suite, datasets, rubric, judge and tool lists"
        return
    yield "inputs that differ (! breaks the comparison, ~ may be what is tested)"
    for change in comparison.inputs[:MOST_ROWS]:
        yield _render_input(change)
    if len(comparison.inputs) > MOST_ROWS:
        yield f"  and {len(comparison.inputs) - MOST_ROWS} more: --json"
    if not comparison.comparable:
        yield from textwrap.wrap(_NOT_COMPARABLE, WIDTH)


def _describe_side(side: RunSide) -> str:
    return f"{side.name}  {side.verdict}{f' ({side.reason})' if side.reason else ''}"


def _render_input(change: InputChange) -> str:
    return f"{_SIGNS[change.weight]} {change.what}: {change.before or _NONE} → {change.after or _NONE}"


def _render_pairing(comparison: RunComparison) -> Iterator[str]:
    only_before, only_after = comparison.unmatched
    yield f"{comparison.pairs:,} pairs; {_PAIRING}"
    yield f"without a partner: {len(only_before):,} in A, {len(only_after):,} in B"
    for letter, cells in (("A", only_before), ("B", only_after)):
        arms = sorted({str(cell.arm) for cell in cells})
        if arms:
            shown = ", ".join(arms[:5]) + (", …" if len(arms) > 5 else "")  # noqa: PLR2004 - enough to see what was renamed
            yield f"  only in {letter}: cells of {shown}"
    if not comparison.pairs:
        yield "nothing to compare: give scenarios, servers and models the same names in both suites, and run again"


def _render_arms(arms: Sequence[ArmComparison]) -> list[str]:
    if not arms:
        return []
    with_usd = any(usage.usd is not None for arm in arms for usage in arm.usage)
    titles = ("arm", "A", "B", "difference", "pairs", "p", "calls", "tokens", "time", *(("USD",) if with_usd else ()))
    rows = []
    for arm in arms:
        change = arm.change
        before, after = arm.usage
        rows.append((
            str(change.arm),
            describe_interval(change.before),
            describe_interval(change.after),
            describe_difference(change.delta),
            str(change.pairs),
            _NONE if change.p is None else f"{change.p:.2f}",
            _arrow(before.tool_calls, after.tool_calls, "{:.1f}"),
            _arrow(before.tokens, after.tokens, "{:.0f}"),
            _arrow(before.seconds, after.seconds, "{:.1f} s"),
            *((_arrow(before.usd, after.usd, "{:.4f}"),) if with_usd else ()),
        ))  # fmt: skip
    return render_grid(Grid(titles, (*[Align.LEFT] * 4, *[Align.RIGHT] * (len(titles) - 4)), tuple(rows)))


def _render_outcomes(arms: Sequence[ArmComparison]) -> list[str]:
    rows = [
        (str(arm.change.arm), outcome.value, _arrow(before, after, "{}"))
        for arm in arms
        for outcome in Outcome
        if (before := arm.outcomes[0].get(outcome, 0)) != (after := arm.outcomes[1].get(outcome, 0))
    ]
    if not rows:
        return []
    return render_grid(Grid(("arm", "outcome", "cells"), (Align.LEFT, Align.LEFT, Align.RIGHT), tuple(rows)))


def _render_marks(comparison: RunComparison) -> list[str]:
    rows = [
        (change.scenario, str(change.arm), change.mark, str(change.gained), str(change.lost), str(change.pairs))
        for change in comparison.marks
    ]
    titles = ("scenario", "arm", "mark", "gained", "lost", "pairs")
    return _cut(titles, (*[Align.LEFT] * 3, *[Align.RIGHT] * 3), rows)


def _render_cells(comparison: RunComparison) -> list[str]:
    rows = []
    for change in comparison.cells:
        marks = [f"−{mark}" for mark in change.lost] + [f"+{mark}" for mark in change.gained]
        before, after = change.endings
        rows.append((
            str(change.cell),
            _arrow(*change.scores, "{:.2f}"),
            before if before == after else f"{before} → {after}",
            ", ".join(marks),
        ))  # fmt: skip
    return _cut(("cell", "score", "ended", "marks"), (Align.LEFT, Align.RIGHT, Align.LEFT, Align.LEFT), rows)


def _render_tools(tools: Sequence[ToolChange] | None) -> list[str]:
    rows = [
        (
            str(tool.arm),
            tool.tool,
            _arrow(_calls(tool.before), _calls(tool.after), "{:,}"),
            _arrow(_errors(tool.before), _errors(tool.after), "{:.0%}"),
            _arrow(_p95(tool.before), _p95(tool.after), "{:.0f} ms"),
            _arrow(_adoption(tool.before), _adoption(tool.after), "{:.0%}"),
        )
        for tool in tools or ()
    ]
    titles = ("arm", "tool", "calls", "errors", "P95", "used in")
    return _cut(titles, (Align.LEFT, Align.LEFT, *[Align.RIGHT] * 4), rows)


def _calls(figures: ToolFigures | None) -> int:
    return 0 if figures is None else figures.calls


def _errors(figures: ToolFigures | None) -> float | None:
    return None if figures is None else figures.error_rate()


def _p95(figures: ToolFigures | None) -> float | None:
    return None if figures is None else figures.p95_ms


def _adoption(figures: ToolFigures | None) -> float:
    return 0.0 if figures is None else figures.adoption


def _arrow(before: float | Decimal | None, after: float | Decimal | None, form: str) -> str:
    left, right = (_NONE if value is None else form.format(value) for value in (before, after))
    return left if left == right else f"{left} → {right}"


def _cut(titles: tuple[str, ...], aligns: tuple[Align, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    # Before the grid measures them: what is made visible is wider than what it stands for.
    shown = tuple(tuple(make_inert(text) for text in row) for row in rows[:MOST_ROWS])
    more = [f"and {len(rows) - MOST_ROWS:,} more: --json"] if len(rows) > MOST_ROWS else []
    return [*render_grid(Grid(titles, aligns, shown)), *more]
