from __future__ import annotations

from proctor.core.ids import Arm
from proctor.core.reports.tool_table import render_tools
from proctor.core.stats.tools import ToolFigures
from proctor.core.trajectory.events import Status


def make_figures(**changes: object) -> ToolFigures:
    statuses = {Status.OK: 7, Status.AGENT_ERROR: 2, Status.INFRA_ERROR: 1}
    values: dict[str, object] = {
        "arm": Arm("sql", "newest"), "tool": "query", "calls": 10, "statuses": statuses, "errors": {"tool_error": 2},
        "p95_ms": 12.4, "result_bytes": 12345, "cells": 4, "used_in": 3, "given_up_in": 0,
    }  # fmt: skip
    return ToolFigures(**{**values, **changes})  # type: ignore[arg-type]


def test_a_line_per_tool() -> None:
    """M-A10, grading rule 8: errors by whose they are, without what infrastructure failed; adoption; given up."""
    line = render_tools([make_figures()]).splitlines()[-1]
    assert line.split() == ["sql", "×", "newest", "query", "10", "22%", "0%", "12", "ms", "12,345", "75%", "0%"]


def test_what_is_unknown_is_no_zero() -> None:
    """M-A10: a tool that infrastructure alone failed has no error rate and no latency."""
    lost = make_figures(calls=1, statuses={Status.INFRA_ERROR: 1}, errors={}, p95_ms=None)
    assert render_tools([lost]).splitlines()[-1].split()[4:8] == ["1", "–", "–", "–"]
    assert render_tools([]) == "no tool was called"
