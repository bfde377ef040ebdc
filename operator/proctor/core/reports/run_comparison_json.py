"""Two compared runs as JSON: all of it, names as the files have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.core.ids import CellKey
from proctor.core.reports.run_comparison import (
    ArmComparison,
    CellChange,
    MarkChange,
    RunComparison,
    RunSide,
    ToolChange,
    Usage,
)
from proctor.core.reports.tool_table import build_figures_json
from proctor.core.stats.observations import Interval


def build_comparison_json(comparison: RunComparison) -> dict[str, Any]:
    """Return a comparison as JSON values."""
    only_before, only_after = comparison.unmatched
    return {
        "before": _side(comparison.before),
        "after": _side(comparison.after),
        "comparable": comparison.comparable,
        "inputs": [
            {"what": change.what, "before": change.before, "after": change.after, "weight": change.weight.value}
            for change in comparison.inputs
        ],
        "pairs": comparison.pairs,
        "onlyBefore": _names(only_before),
        "onlyAfter": _names(only_after),
        "arms": [_arm(arm) for arm in comparison.arms],
        "marks": [_mark(mark) for mark in comparison.marks],
        "cells": [_cell(cell) for cell in comparison.cells],
        "tools": None if comparison.tools is None else [_tool(tool) for tool in comparison.tools],
        "notes": list(comparison.notes),
    }


def _side(side: RunSide) -> dict[str, Any]:
    return {"run": side.name, "verdict": side.verdict, "reason": side.reason}


def _names(cells: Sequence[CellKey]) -> list[str]:
    return [str(cell) for cell in cells]


def _arm(arm: ArmComparison) -> dict[str, Any]:
    change = arm.change
    return {
        "server": change.arm.server,
        "model": change.arm.model,
        "before": {"score": _interval(change.before), **_usage(arm.usage[0]), "outcomes": dict(arm.outcomes[0])},
        "after": {"score": _interval(change.after), **_usage(arm.usage[1]), "outcomes": dict(arm.outcomes[1])},
        "difference": _interval(change.delta),
        "pairs": change.pairs,
        "p": change.p,
    }


def _interval(interval: Interval | None) -> dict[str, Any] | None:
    if interval is None:
        return None
    return {
        "mean": round(interval.mean, 6),
        "low": round(interval.low, 6),
        "high": round(interval.high, 6),
        "deterministic": interval.deterministic,
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "toolCalls": usage.tool_calls,
        "tokens": usage.tokens,
        "seconds": usage.seconds,
        "usd": None if usage.usd is None else format(usage.usd, "f"),
    }


def _mark(mark: MarkChange) -> dict[str, Any]:
    return {
        "scenario": mark.scenario,
        "server": mark.arm.server,
        "model": mark.arm.model,
        "mark": mark.mark,
        "gained": mark.gained,
        "lost": mark.lost,
        "pairs": mark.pairs,
    }


def _cell(cell: CellChange) -> dict[str, Any]:
    return {
        "cell": str(cell.cell),
        "scores": list(cell.scores),
        "ended": list(cell.endings),
        "gained": list(cell.gained),
        "lost": list(cell.lost),
    }


def _tool(tool: ToolChange) -> dict[str, Any]:
    return {
        "server": tool.arm.server,
        "model": tool.arm.model,
        "tool": tool.tool,
        "before": None if tool.before is None else build_figures_json(tool.before),
        "after": None if tool.after is None else build_figures_json(tool.after),
    }
