"""The documentation's tables of simulated runs, as markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.core.reports.power import percent, render_markdown_table
from proctor.core.stats.chances import FOUR_MARKS, STEPS, AllOrNothing, Chance, Lapses, NormalScores, RareFailure
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
    ("0, 0.5, 0.83 or 1", FOUR_MARKS, 0.1, Size(4, 48)),
)

GROWING: tuple[tuple[str, Chance, float, Size], ...] = (
    ("normal, sd 0.05", NormalScores(0.05), 0.05, Size(4, 18, 5)),
    ("normal, sd 0.10", NormalScores(0.1), 0.05, Size(4, 24, 6)),
    ("normal, sd 0.10", NormalScores(0.1), 0.05, Size(8, 12, 3)),
    ("normal, sd 0.10", NormalScores(0.1), 0.1, Size(4, 10, 4)),
    ("lapses in 10 % of cells", Lapses(0.1), 0.05, Size(4, 160, 20)),
    ("lapses in 10 % of cells", Lapses(0.1), 0.1, Size(4, 48, 8)),
    ("0, 0.5, 0.83 or 1", FOUR_MARKS, 0.1, Size(4, 52, 10)),
)
"""Runs with adaptive replicates, of sizes that are enough."""

KINDS: tuple[tuple[str, Chance], ...] = (
    ("normal, sd 0.10", NormalScores(0.1)),
    ("lapses in 3 % of cells", Lapses(0.03)),
    ("lapses in 10 % of cells", Lapses(0.1)),
    ("steady, a rare failure", RareFailure()),
    ("1, or 0", AllOrNothing()),
    ("steps of 0.2", STEPS),
    ("0, 0.5, 0.83 or 1", FOUR_MARKS),
)
SMALL = tuple(Size(scenarios, replicates) for scenarios in (1, 2, 4) for replicates in (3, 5, 10))
SMALL_GROWING = (Size(1, 10, 3), Size(2, 12, 4), Size(4, 15, 5))
SMALL_DROPS = (0.05, 0.15)

_TITLES = (
    "scores",
    "`maxDrop`",
    "scenarios × replicates",
    "equal: pass",
    "equal: fail",
    "limit: pass",
    "twice: fail",
)


@dataclass(frozen=True, slots=True)
class SmallRuns:
    """The worst that few cells do with one kind of scores, as shares of runs.

    Attributes:
        plain: drops of exactly the smaller limit that pass by an interval without allowances.
        passed: that pass by Proctor's.
        failed: equal pairs that fail.
        grown_passed: as `passed`, of runs with adaptive replicates.
        grown_failed: as `failed`, of those.
    """

    name: str
    plain: float
    passed: float
    failed: float
    grown_passed: float
    grown_failed: float


def measure_sizes() -> list[Power]:
    """Return what each of `SIZES` can tell."""
    return [measure_power(chance, size, max_drop=max_drop) for _, chance, max_drop, size in SIZES]


def measure_growing() -> list[Power]:
    """Return what each of `GROWING` can tell, and takes."""
    return [measure_power(chance, size, max_drop=max_drop) for _, chance, max_drop, size in GROWING]


def measure_small() -> list[SmallRuns]:
    """Return the worst of all small sizes, and of two limits, for each of `KINDS`."""
    return [
        SmallRuns(
            name,
            plain=max(
                simulate(chance, size, drop=SMALL_DROPS[0], max_drop=SMALL_DROPS[0], honest=False).passed
                for size in SMALL
            ),
            passed=_worst_pass(chance, SMALL),
            failed=_worst_fail(chance, SMALL),
            grown_passed=_worst_pass(chance, SMALL_GROWING),
            grown_failed=_worst_fail(chance, SMALL_GROWING),
        )
        for name, chance in KINDS
    ]


def _worst_pass(chance: Chance, sizes: Sequence[Size]) -> float:
    return max(simulate(chance, size, drop=drop, max_drop=drop).passed for size in sizes for drop in SMALL_DROPS)


def _worst_fail(chance: Chance, sizes: Sequence[Size]) -> float:
    return max(simulate(chance, size, drop=0.0, max_drop=SMALL_DROPS[0]).failed for size in sizes)


def render_tables(sizes: Sequence[Power], growing: Sequence[Power], small: Sequence[SmallRuns]) -> str:
    """Return all tables, with what they have in common."""
    return (
        f"{RUNS:,} simulated runs per figure. Of a fixed size:\n\n{_render_sizes(sizes)}\n\n"
        f"With adaptive replicates, and how many a run takes on average:\n\n{_render_growing(growing)}\n\n"
        f"The worst of few cells: 1, 2 and 4 scenarios × 3, 5 and 10 replicates; adaptive, "
        f"{_list_sizes(SMALL_GROWING)}; `maxDrop` 0.05 and 0.15:\n\n{_render_small(small)}"
    )


def _render_growing(powers: Sequence[Power]) -> str:
    titles = (*_TITLES, "replicates: equal", "limit", "twice")
    rows = [
        (
            *_describe_row(*kind, power),
            *(f"{rates.replicates:.1f}" for rates in (power.equal, power.limit, power.double)),
        )
        for kind, power in zip(GROWING, powers, strict=True)
    ]
    return render_markdown_table(titles, rows)


def _describe_row(name: str, _chance: Chance, max_drop: float, size: Size, power: Power) -> tuple[str, ...]:
    return (
        name,
        f"{max_drop:g}",
        _describe_size(size),
        percent(power.equal.passed),
        percent(power.equal.failed),
        percent(power.limit.passed),
        percent(power.double.failed),
    )


def _describe_size(size: Size) -> str:
    return f"{size.scenarios} × {'' if size.first is None else f'{size.first} to '}{size.replicates}"


def _list_sizes(sizes: Sequence[Size]) -> str:
    *most, last = [_describe_size(size) for size in sizes]
    return f"{', '.join(most)} and {last}"


def _render_sizes(powers: Sequence[Power]) -> str:
    return render_markdown_table(
        _TITLES, [_describe_row(*kind, power) for kind, power in zip(SIZES, powers, strict=True)]
    )


def _render_small(small: Sequence[SmallRuns]) -> str:
    titles = (
        "scores",
        "limit: pass, plain interval",
        "limit: pass",
        "equal: fail",
        "adaptive: limit: pass",
        "adaptive: equal: fail",
    )
    rows = [
        (
            row.name,
            *(percent(share) for share in (row.plain, row.passed, row.failed, row.grown_passed, row.grown_failed)),
        )
        for row in small
    ]
    return render_markdown_table(titles, rows)
