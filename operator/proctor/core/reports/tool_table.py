"""What each tool of each arm showed, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.core.reports.grid import Align, Grid, render_grid
from proctor.core.stats.tools import ToolFigures
from proctor.core.trajectory.events import Status

_TITLES = ("arm", "tool", "calls", "agent's errors", "server's errors", "P95", "result bytes", "used in", "given up")
_ALIGNS = (Align.LEFT, Align.LEFT, *(Align.RIGHT,) * 7)


def render_tools(tools: Sequence[ToolFigures]) -> str:
    """Render one line per arm and tool."""
    if not tools:
        return "no tool was called"
    rows = tuple(_row(figures) for figures in tools)
    return "\n".join(render_grid(Grid(_TITLES, _ALIGNS, rows)))


def build_tools_json(tools: Sequence[ToolFigures]) -> list[dict[str, Any]]:
    """Return the same for machines, with whose doing the calls' outcomes are."""
    return [
        {
            "server": figures.arm.server,
            "model": figures.arm.model,
            "tool": figures.tool,
            **build_figures_json(figures),
            "statuses": {status.value: count for status, count in figures.statuses.items()},
        }
        for figures in tools
    ]


def build_figures_json(figures: ToolFigures) -> dict[str, Any]:
    """Return what one tool showed, without whose it is."""
    return {
        "calls": figures.calls,
        "errors": dict(figures.errors),
        "errorRate": figures.error_rate(),
        "p95Ms": figures.p95_ms,
        "resultBytes": figures.result_bytes,
        "adoption": figures.adoption,
        "givenUp": figures.given_up,
    }


def _row(figures: ToolFigures) -> tuple[str, ...]:
    return (
        str(figures.arm),
        figures.tool,
        str(figures.calls),
        _share(figures.error_rate(Status.AGENT_ERROR)),
        _share(figures.error_rate(Status.SERVER_ERROR)),
        "–" if figures.p95_ms is None else f"{figures.p95_ms:.0f} ms",
        f"{figures.result_bytes:,}",
        _share(figures.adoption),
        _share(figures.given_up),
    )


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"
