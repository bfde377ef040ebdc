"""Scripted models in the shipped scenarios."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from proctor.core.agents.playing import CallTool, Played, add_result, first_request, play
from proctor.core.agents.prompt import PromptLimits, neutral_prompt
from proctor.core.scenarios.brief import load_brief

__all__ = ["ANCHOR", "ROOT", "SCENARIOS", "CallTool", "Played", "add_result", "make_body", "play"]

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "scenarios"
ANCHOR = datetime(2026, 11, 30, 12, tzinfo=UTC)


def make_body(scenario: str, *tools: str, anchor: datetime = ANCHOR) -> dict[str, Any]:
    """The first request of an attempt."""
    told = neutral_prompt(load_brief(SCENARIOS / scenario), anchor, PromptLimits(max_turns=25, max_tool_calls=40))
    return first_request(told, *tools)
