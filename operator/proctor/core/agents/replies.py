"""Assistant messages in the form of the Messages API, with counts that depend on the words alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.core.digests import canonical_json, digest_json

_BYTES_PER_TOKEN = 4
"""What a provider's tokenizer comes to on English and SQL, roughly; scripted counts only have to be steady."""


def text_reply(body: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the message that ends the turn with a text."""
    return _reply(body, [{"type": "text", "text": text}], "end_turn")


def tool_reply(body: Mapping[str, Any], tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message that calls one tool."""
    call = digest_json([body.get("messages"), tool, arguments])[:24]
    return _reply(
        body, [{"type": "tool_use", "id": f"toolu_{call}", "name": tool, "input": dict(arguments)}], "tool_use"
    )


def _reply(body: Mapping[str, Any], content: list[dict[str, Any]], stop_reason: str) -> dict[str, Any]:
    told = canonical_json([body.get("system"), body.get("messages"), body.get("tools")])
    return {
        "id": f"msg_{digest_json([digest_json(content), len(told)])[:24]}",
        "type": "message",
        "role": "assistant",
        "model": str(body.get("model", "scripted")),
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": _count(told),
            "output_tokens": _count(canonical_json(content)),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


def _count(text: bytes) -> int:
    return -(-len(text) // _BYTES_PER_TOKEN)
