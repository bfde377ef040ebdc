"""Cells as rows of a table, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

COLUMNS = (
    "run",
    "scenario",
    "server",
    "model",
    "replicate",
    "attempt",
    "state",
    "outcome",
    "reason",
    "score",
    "programmatic",
    "judge",
    "penalty",
    "ungraded",
    "turns",
    "toolCalls",
    "agentToolErrors",
    "serverToolErrors",
    "infraToolErrors",
    "inputTokens",
    "outputTokens",
    "usd",
    "seconds",
    "waitedSeconds",
    "answerDigest",
    "trajectoryDigest",
)

_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n")
"""What a spreadsheet takes for the beginning of a formula (https://owasp.org/www-community/attacks/CSV_Injection)."""


_LINE_END = "\r\n"


def render_header() -> str:
    """Return the first line."""
    return _render(COLUMNS)


def render_cell_row(run: str, cell: Mapping[str, Any]) -> str:
    """Return a cell's line.

    Args:
        run: the run's name.
        cell: as run.json has it.
    """
    errors = cell.get("toolErrors") or {}
    values = {
        **cell,
        "run": run,
        "programmatic": (cell.get("programmatic") or {}).get("score"),
        "agentToolErrors": errors.get("agent"),
        "serverToolErrors": errors.get("server"),
        "infraToolErrors": errors.get("infra"),
    }
    return _render(tuple(_guard(values.get(name)) for name in COLUMNS))


def _guard(value: object) -> str:
    if value is None:
        return ""
    text = str(value)
    return f"'{text}" if text.startswith(_FORMULA_SIGNS) else text


def _render(values: tuple[str, ...]) -> str:
    line = io.StringIO()
    # The writer quotes line ends only where they could end a line.
    csv.writer(line, lineterminator=_LINE_END).writerow(values)
    return line.getvalue().removesuffix(_LINE_END)
