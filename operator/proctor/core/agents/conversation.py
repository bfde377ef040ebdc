"""Reading a Messages request: what was said, which tools there are, what they returned."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Body = Mapping[str, Any]

# In the prompt, which is ours: "it is Monday, …, which is 2026-11-30T12:00:00Z".
_INSTANT = re.compile(r"which is (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d{1,9})?Z")


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a scripted model needs of a request.

    Attributes:
        tools: names of the offered tools.
        calls: tool calls made so far.
        results: texts of the tools' results, in order.
        anchor: the fixed time as SQL understands it; empty if the prompt names none.
    """

    tools: tuple[str, ...]
    calls: int
    results: tuple[str, ...]
    anchor: str

    def find_tool(self, name: str) -> str | None:
        """Return a tool's name as it is offered here: alone, or behind a client's prefix (``mcp__server__name``)."""
        for offered in self.tools:
            if offered == name or offered.endswith(f"__{name}"):
                return offered
        return None


def read_conversation(body: Body) -> Conversation:
    """Read a request; whatever is malformed counts as absent."""
    messages = [message for message in _sequence(body.get("messages")) if isinstance(message, Mapping)]
    blocks = [(message.get("role"), block) for message in messages for block in _blocks(message.get("content"))]
    texts = [text for role, block in blocks if role == "user" for text in _texts(block)]
    system = "\n".join(text for block in _blocks(body.get("system")) for text in _texts(block))
    found = _INSTANT.search(system) or _INSTANT.search("\n".join(texts))
    return Conversation(
        tools=tuple(
            tool["name"]
            for tool in _sequence(body.get("tools"))
            if isinstance(tool, Mapping) and isinstance(tool.get("name"), str)
        ),
        calls=sum(block.get("type") == "tool_use" for role, block in blocks if role == "assistant"),
        results=tuple(
            "\n".join(text for inner in _blocks(block.get("content")) for text in _texts(inner))
            for role, block in blocks
            if role == "user" and block.get("type") == "tool_result"
        ),
        anchor=found[1].replace("T", " ") if found else "",
    )


def _blocks(content: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    for block in _sequence(content):
        if isinstance(block, Mapping):
            yield block


def _texts(block: Mapping[str, Any]) -> Iterator[str]:
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        yield block["text"]


def _sequence(value: object) -> Sequence[Any]:
    return value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else ()
