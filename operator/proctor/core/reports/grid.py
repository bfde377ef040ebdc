"""Rows of text, aligned: the one way in which every report prints a table."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import StrEnum

_COMBINING = "M"


class Align(StrEnum):
    """Which edge a column's text keeps to."""

    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Grid:
    """A table as plain text.

    Attributes:
        titles: one per column.
        aligns: one per column.
        rows: cells; each row as long as the titles.
    """

    titles: tuple[str, ...]
    aligns: tuple[Align, ...]
    rows: tuple[tuple[str, ...], ...]


def width_of(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    width = 0
    for sign in text:
        if unicodedata.category(sign).startswith(_COMBINING):
            continue
        width += 2 if unicodedata.east_asian_width(sign) in "WF" else 1
    return width


def render_grid(grid: Grid) -> list[str]:
    """Render a table's lines: titles, a rule, and one line per row; no trailing spaces."""
    table = (grid.titles, *grid.rows)
    widths = [max(width_of(row[column]) for row in table) for column in range(len(grid.titles))]
    lines = [_line(row, widths, grid.aligns) for row in table]
    rule = "  ".join("─" * width for width in widths)
    return [lines[0], rule, *lines[1:]]


def _line(row: tuple[str, ...], widths: list[int], aligns: tuple[Align, ...]) -> str:
    cells = []
    for text, width, align in zip(row, widths, aligns, strict=True):
        space = " " * (width - width_of(text))
        cells.append(space + text if align is Align.RIGHT else text + space)
    return "  ".join(cells).rstrip()
