"""Plays scripted models as an agent would: what they ask goes to a tool, what it returns goes back to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from proctor.core.agents.prompt import PromptLimits, neutral_prompt
from proctor.core.agents.scripted import ScriptContext, reply
from proctor.core.scenarios.brief import load_brief

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "scenarios"
ANCHOR = datetime(2026, 11, 30, 12, tzinfo=UTC)

CallTool = Callable[[str, dict[str, Any]], Awaitable[str]]


@dataclass
class Played:
    """How a scripted model's attempt went."""

    answer: str
    calls: list[dict[str, Any]] = field(default_factory=list)
    results: list[str] = field(default_factory=list)


def make_body(scenario: str, *tools: str, anchor: datetime = ANCHOR) -> dict[str, Any]:
    """The first request of an attempt."""
    told = neutral_prompt(load_brief(SCENARIOS / scenario), anchor, PromptLimits(max_turns=25, max_tool_calls=40))
    return {
        "model": "scripted",
        "max_tokens": 4096,
        "system": told.system,
        "messages": [{"role": "user", "content": told.prompt}],
        "tools": [{"name": name, "input_schema": {"type": "object"}} for name in tools],
    }


def add_result(body: dict[str, Any], message: dict[str, Any], text: str) -> None:
    """Put a reply that calls a tool, and what the tool returned, at the end of a conversation."""
    call = message["content"][0]
    body["messages"] += [
        {"role": "assistant", "content": message["content"]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": call["id"], "content": [{"type": "text", "text": text}]}
            ],
        },
    ]


async def play(policy: str, context: ScriptContext, body: dict[str, Any], call_tool: CallTool) -> Played:
    """Play a policy to its end."""
    played = Played("")
    for _ in range(40):
        message = reply(policy, body, context)
        content = message["content"][0]
        if message["stop_reason"] == "end_turn":
            played.answer = content["text"]
            return played
        result = await call_tool(content["name"], content["input"])
        played.calls.append(content["input"])
        played.results.append(result)
        add_result(body, message, result)
    raise AssertionError("the scripted model does not end")
