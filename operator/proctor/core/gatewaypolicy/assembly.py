"""A streamed message put together again: for the record, for its usage, and to know whether it came whole."""

from __future__ import annotations

import json
from typing import Any

from proctor.core.gatewaypolicy.pricing import Usage
from proctor.core.gatewaypolicy.sse import ServerEvent

_MAX_BLOCKS = 10_000
CONTENT_EVENTS = frozenset({"content_block_start", "content_block_delta", "content_block_stop", "message_delta"})
"""From the first of these on, a stream has said something that can't be taken back."""


class MessageAssembler:
    """Follows the events of one stream; what makes no sense is left out, never raised."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.complete = False
        self.error_type = ""
        self.error_message = ""
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}

    def feed(self, event: ServerEvent) -> str:
        """Add an event; return its type, empty if it is none of the Messages API."""
        try:
            payload = json.loads(event.data)
        except (ValueError, RecursionError):
            return ""
        kind = payload.get("type") if isinstance(payload, dict) else None
        if not isinstance(kind, str):
            return ""
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, payload)
        return kind

    def message(self) -> dict[str, Any]:
        """Return the message as far as it came."""
        content = []
        for index in sorted(self._blocks):
            block = dict(self._blocks[index])
            for field in ("text", "thinking"):
                if (index, field) in self._pieces:
                    block[field] = str(block.get(field, "")) + "".join(self._pieces[index, field])
            if block.get("type") == "tool_use":
                pieces = "".join(self._pieces.get((index, "input"), ()))
                block["input"] = _parse_input(pieces) if pieces else block.get("input", {})
            content.append(block)
        usage = {
            "input_tokens": self.usage.input_tokens,
            "output_tokens": self.usage.output_tokens,
            "cache_read_input_tokens": self.usage.cache_read_tokens,
            "cache_creation_input_tokens": self.usage.cache_write_tokens,
        }
        return {**self._message, "content": content, "usage": usage}

    def _start(self, payload: dict[str, Any]) -> None:
        message = payload.get("message")
        if isinstance(message, dict):
            self._message = {key: value for key, value in message.items() if key not in {"content", "usage"}}
            self.usage = Usage.parse(message.get("usage"))

    def _start_block(self, payload: dict[str, Any]) -> None:
        index, block = payload.get("index"), payload.get("content_block")
        if isinstance(index, int) and isinstance(block, dict) and len(self._blocks) < _MAX_BLOCKS:
            self._blocks[index] = dict(block)

    def _extend_block(self, payload: dict[str, Any]) -> None:
        index, delta = payload.get("index"), payload.get("delta")
        if not isinstance(index, int) or index not in self._blocks or not isinstance(delta, dict):
            return
        block = self._blocks[index]
        match delta.get("type"):
            case "input_json_delta":
                self._add(index, "input", delta.get("partial_json"))
            case "text_delta":
                self._add(index, "text", delta.get("text"))
            case "thinking_delta":
                self._add(index, "thinking", delta.get("thinking"))
            case "signature_delta":
                block["signature"] = str(delta.get("signature", ""))
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]

    def _add(self, index: int, field: str, piece: object) -> None:
        # Put together once, at the end: a long text that grew with each piece would be copied each time.
        self._pieces.setdefault((index, field), []).append("" if piece is None else str(piece))

    def _change(self, payload: dict[str, Any]) -> None:
        delta = payload.get("delta")
        if isinstance(delta, dict):
            self._message |= delta
        self.usage = self.usage.updated(payload.get("usage"))

    def _stop(self, _: dict[str, Any]) -> None:
        self.complete = True

    def _fail(self, payload: dict[str, Any]) -> None:
        error = payload.get("error")
        error = error if isinstance(error, dict) else {}
        self.error_type = str(error.get("type", "error"))
        self.error_message = str(error.get("message", ""))


_HANDLERS = {
    "message_start": MessageAssembler._start,  # noqa: SLF001 - the table of this module's own class
    "content_block_start": MessageAssembler._start_block,  # noqa: SLF001 - as above
    "content_block_delta": MessageAssembler._extend_block,  # noqa: SLF001 - as above
    "message_delta": MessageAssembler._change,  # noqa: SLF001 - as above
    "message_stop": MessageAssembler._stop,  # noqa: SLF001 - as above
    "error": MessageAssembler._fail,  # noqa: SLF001 - as above
}


def _parse_input(pieces: str) -> object:
    try:
        return json.loads(pieces)
    except (ValueError, RecursionError):
        # Kept as it came: a model that writes broken JSON is a finding about the model.
        return pieces
