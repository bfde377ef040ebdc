"""Server-sent events of the Messages API: reading a stream piece by piece, and telling a whole message as one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proctor.core.digests import canonical_json

MAX_EVENT_BYTES = 4 * 1024 * 1024
"""One event longer than this is no event of the Messages API."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event of a stream.

    Attributes:
        name: the event's type.
        data: its payload, as it came.
    """

    name: str
    data: bytes

    def encode(self) -> bytes:
        """Return the event as it is sent."""
        lines = b"".join(b"data: " + line + b"\n" for line in self.data.split(b"\n"))
        return b"event: " + self.name.encode() + b"\n" + lines + b"\n"


class StreamTooWideError(ValueError):
    """An event is larger than any that the Messages API sends."""


class EventReader:
    """Cuts a byte stream into events, whatever pieces it arrives in; an unfinished event at the end is never given."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = b""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """Add a piece; give the events that it completes.

        Raises:
            StreamTooWideError: one event has more than `MAX_EVENT_BYTES`.
        """
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            event = self._take_line(line.removesuffix(b"\r"))
            if event is not None:
                yield event
        if len(self._rest) + self._size > MAX_EVENT_BYTES:
            raise StreamTooWideError(f"a stream event has more than {MAX_EVENT_BYTES} bytes")

    def _take_line(self, line: bytes) -> ServerEvent | None:
        if not line:
            event = ServerEvent(self._name.decode("utf-8", "replace"), b"\n".join(self._data))
            had_any = bool(self._data)
            self._name, self._data, self._size = b"", [], 0
            return event if had_any else None
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            self._name = value
        elif field == b"data":
            self._data.append(value)
            self._size += len(value)
        return None


def render_stream(message: Mapping[str, Any]) -> Iterator[bytes]:
    """Tell a whole message as the stream that would have brought it."""
    usage = message.get("usage", {})
    opening = {**message, "content": [], "stop_reason": None, "stop_sequence": None}
    yield _encode("message_start", {"message": opening})
    for index, block in enumerate(message.get("content", [])):
        yield from _render_block(index, block)
    delta = {"stop_reason": message.get("stop_reason"), "stop_sequence": message.get("stop_sequence")}
    yield _encode("message_delta", {"delta": delta, "usage": {"output_tokens": usage.get("output_tokens", 0)}})
    yield _encode("message_stop", {})


def _render_block(index: int, block: Mapping[str, Any]) -> Iterator[bytes]:
    if block.get("type") == "tool_use":
        opening = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block.get("input", {}), ensure_ascii=False)}
    else:
        opening = {**block, "text": ""}
        delta = {"type": "text_delta", "text": block.get("text", "")}
    yield _encode("content_block_start", {"index": index, "content_block": opening})
    yield _encode("content_block_delta", {"index": index, "delta": delta})
    yield _encode("content_block_stop", {"index": index})


def _encode(name: str, payload: Mapping[str, Any]) -> bytes:
    return ServerEvent(name, canonical_json({"type": name, **payload})).encode()
