"""The documentation's tables of simulated runs, as markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.core.reports.power import percent, render_markdown_table
from proctor.core.stats.chances import AllOrNothing, Chance, Lapses, NormalScores, RareFailure, Steps
from proctor.core.stats.power import RUNS, Power, Size, measure_power, simulate

SIZES: tuple[tuple[str, Chance, float, Size], ...] = (
    ("normal, sd 0.05", NormalScores(0.05), 0.05, Size(1, 5)),
    ("normal, sd 0.05", NormalScores(0.05), 0.05, Size(4, 5)),
    ("normal, sd 0.05", NormalScores(0.05), 0.05, Size(4, 12)),
    ("normal, sd 0.05", NormalScores(0.05), 0.05, Size(4, 18)),
    ("normal, sd 0.10", NormalScores(0.1), 0.05, Size(4, 12)),
    ("normal, sd 0.10", NormalScores(0.1), 0.05, Size(4, 22)),
    ("normal, sd 0.10", NormalScores(0.1), 0.05, Size(8, 11)),
    ("normal, sd 0.10", NormalScores(0.1), 0.1, Size(4, 10)),
    ("lapses in 10 % of cells", Lapses(0.1), 0.05, Size(4, 22)),
    ("lapses in 10 % of cells", Lapses(0.1), 0.05, Size(4, 140)),
    ("lapses in 10 % of cells", Lapses(0.1), 0.1, Size(4, 40)),
)

KINDS: tuple[tuple[str, Chance], ...] = (
    ("normal, sd 0.10", NormalScores(0.1)),
    ("lapses in 3 % of cells", Lapses(0.03)),
    ("lapses in 10 % of cells", Lapses(0.1)),
    ("steady, a rare failure", RareFailure()),
    ("1, or 0", AllOrNothing()),
    ("steps of 0.2", Steps()),
)
SMALL = tuple(Size(scenarios, replicates) for scenarios in (1, 2, 4) for replicates in (3, 5, 10))
SMALL_DROPS = (0.05, 0.15)


@dataclass(frozen=True, slots=True)
class SmallRuns:
    """The worst that few cells do with one kind of scores, as shares of runs.

    Attributes:
        plain: drops of exactly the limit that pass by an interval without allowances.
        passed: that pass by Proctor's.
        failed: equal pairs that fail.
    """

    name: str
    plain: float
    passed: float
    failed: float


def measure_sizes() -> list[Power]:
    """Return what each of `SIZES` can tell."""
    return [measure_power(chance, size, max_drop=max_drop) for _, chance, max_drop, size in SIZES]


def measure_small() -> list[SmallRuns]:
    """Return the worst of all `SMALL` sizes, and of two limits, for each of `KINDS`."""
    found = []
    for name, chance in KINDS:
        plain, passed = (
            max(
                simulate(chance, size, drop=drop, max_drop=drop, honest=honest).passed
                for size in SMALL
                for drop in SMALL_DROPS
            )
            for honest in (False, True)
        )
        failed = max(simulate(chance, size, drop=0.0, max_drop=SMALL_DROPS[0]).failed for size in SMALL)
        found.append(SmallRuns(name, plain, passed, failed))
    return found


def render_tables(sizes: Sequence[Power], small: Sequence[SmallRuns]) -> str:
    """Return both tables, with what they have in common."""
    return (
        f"{RUNS:,} simulated runs per figure.\n\n{_render_sizes(sizes)}\n\n"
        f"The worst of 1, 2 and 4 scenarios × 3, 5 and 10 replicates, and of `maxDrop` 0.05 and 0.15:\n\n"
        f"{_render_small(small)}"
    )


def _render_sizes(powers: Sequence[Power]) -> str:
    titles = (
        "scores",
        "`maxDrop`",
        "scenarios × replicates",
        "equal: pass",
        "equal: fail",
        "limit: pass",
        "twice: fail",
    )
    rows = [
        (
            name,
            f"{max_drop:g}",
            f"{size.scenarios} × {size.replicates}",
            percent(power.equal.passed),
            percent(power.equal.failed),
            percent(power.limit.passed),
            percent(power.double.failed),
        )
        for (name, _, max_drop, size), power in zip(SIZES, powers, strict=True)
    ]
    return render_markdown_table(titles, rows)


def _render_small(small: Sequence[SmallRuns]) -> str:
    titles = ("scores", "limit: pass, plain interval", "limit: pass", "equal: fail")
    return render_markdown_table(
        titles, [(row.name, percent(row.plain), percent(row.passed), percent(row.failed)) for row in small]
    )
