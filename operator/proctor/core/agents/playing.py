"""Playing a scripted model to its end without a gateway: what it asks goes to a tool, what that returns goes back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from proctor.core.agents.prompt import NeutralPrompt
from proctor.core.agents.scripted import ScriptContext, reply
from proctor.errors import Terminal

CallTool = Callable[[str, dict[str, Any]], Awaitable[str]]

_MOST_CALLS = 40
"""More than any policy may have; a model that asks on does not end."""


@dataclass
class Played:
    """How a scripted model's attempt went.

    Attributes:
        answer: what it said at last.
        calls: the arguments of its tool calls, in order.
        results: what these returned.
    """

    answer: str
    calls: list[dict[str, Any]] = field(default_factory=list)
    results: list[str] = field(default_factory=list)


def first_request(told: NeutralPrompt, *tools: str) -> dict[str, Any]:
    """Return the first request of an attempt: a Messages request body."""
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
    """Play a policy to its end.

    Raises:
        InvalidInput: there is no such policy.
        Terminal: it does not end.
    """
    played = Played("")
    for _ in range(_MOST_CALLS):
        message = reply(policy, body, context)
        content = message["content"][0]
        if message["stop_reason"] == "end_turn":
            played.answer = content["text"]
            return played
        result = await call_tool(content["name"], content["input"])
        played.calls.append(content["input"])
        played.results.append(result)
        add_result(body, message, result)
    raise Terminal(f"scripted policy {policy}: still asking after {_MOST_CALLS} calls")
