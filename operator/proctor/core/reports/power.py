"""What sizes of runs can tell: for a terminal, and as the table of the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from proctor.core.reports.grid import Align, Grid, render_grid
from proctor.core.reports.plan import span


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRow:
    """One size, and how often simulated runs of it say what.

    Attributes:
        replicates: of the suite; the most, where they are adaptive.
        pairs: of each candidate arm with its baseline.
        least_cells: of a run that stops as soon as it may, controls included.
        cells: of a run that takes all its replicates.
        usd: most that one attempt of every cell may cost; None where a price is unknown.
        equal_passes: share of runs that pass, of a candidate that is as good as the baseline.
        limit_passes: of one that is exactly the largest allowed drop worse.
        double_fails: share of runs that fail, of one that is twice that worse.
        equal_takes: replicates that a run takes on average, of a candidate that is as good as the baseline.
        double_takes: of one that is twice the largest allowed drop worse.
    """

    replicates: int
    pairs: int
    least_cells: int
    cells: int
    usd: Decimal | None
    equal_passes: float
    limit_passes: float
    double_fails: float
    equal_takes: float
    double_takes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SizePlan:
    """How many replicates a suite needs.

    Attributes:
        suite: the suite's name.
        scenarios: how many.
        max_drop: largest drop that may pass.
        max_drop_from: who said so.
        deviation: standard deviation of a cell's score.
        scores: how scores are drawn, and who said so.
        first: replicates after which a run may stop; None where they are fixed.
        replicates: the least that are enough; None if none that was tried is.
        most: replicates tried at most.
        runs: simulated per figure; 0 where nothing had to be simulated.
        sizes: from small to large.
        notes: what to know beside.
    """

    suite: str
    scenarios: int
    max_drop: float
    max_drop_from: str
    deviation: float
    scores: str
    first: int | None
    replicates: int | None
    most: int
    runs: int
    sizes: tuple[SizeRow, ...] = ()
    notes: tuple[str, ...] = ()


def render_size_plan(plan: SizePlan) -> str:
    """Render how many replicates a suite needs for a terminal."""
    lines = [
        f"{plan.suite}: {plan.scenarios} scenario{'' if plan.scenarios == 1 else 's'}",
        f"largest drop that may pass: {plan.max_drop:g} ({plan.max_drop_from})",
        f"scores: standard deviation {plan.deviation:.3g} per cell ({plan.scores})",
        "",
    ]
    if plan.sizes:
        titles = _titles(plan)
        grid = Grid(titles, (Align.RIGHT,) * len(titles), tuple(_row(size, plan.first) for size in plan.sizes))
        lines += [*render_grid(grid), f"{plan.runs} simulated runs per figure", ""]
    lines.append(_answer(plan))
    lines.extend(f"note: {note}" for note in plan.notes)
    return "\n".join(lines)


def render_markdown_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Render a table for a page; the first column is text, the others are figures."""
    rule = ["---", *["---:"] * (len(titles) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (titles, rule, *rows))


def percent(share: float) -> str:
    """Render a share of runs; none at all is not the same as few."""
    if 0 < share < 0.01:  # noqa: PLR2004 - one in a hundred
        return "< 1 %"
    return f"{share * 100:.0f} %"


def _titles(plan: SizePlan) -> tuple[str, ...]:
    passing, failing = f"{plan.max_drop:g} worse passes", f"{2 * plan.max_drop:g} worse fails"
    takes = () if plan.first is None else ("equal takes", f"{2 * plan.max_drop:g} worse takes")
    return ("replicates", "equal passes", passing, failing, *takes, "cells", "at most")


def _row(size: SizeRow, first: int | None) -> tuple[str, ...]:
    takes = () if first is None else (f"{size.equal_takes:.1f}", f"{size.double_takes:.1f}")
    return (
        span(size.replicates if first is None else min(first, size.replicates), size.replicates),
        percent(size.equal_passes),
        percent(size.limit_passes),
        percent(size.double_fails),
        *takes,
        span(size.least_cells, size.cells),
        "unknown" if size.usd is None else f"${size.usd:,.2f}",
    )


def _answer(plan: SizePlan) -> str:
    if plan.replicates is None:
        return (
            f"no size up to {plan.most} replicates is enough: add scenarios, allow a larger drop, "
            "or make the scores vary less"
        )
    count = plan.replicates
    what = f"{count} replicates are" if plan.first is None else f"adaptive.maxReplicates {count} is"
    chosen = next((size for size in plan.sizes if size.replicates == plan.replicates), None)
    if chosen is None:
        return f"{what} enough"
    passing, failing = percent(chosen.equal_passes), percent(chosen.double_fails)
    return (
        f"{what} enough: an equal candidate passes in {passing} of runs, "
        f"one that is {2 * plan.max_drop:g} worse fails in {failing}"
    )
