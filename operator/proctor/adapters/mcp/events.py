"""Server-sent events as MCP servers send them: with ids to resume at, and in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event.

    Attributes:
        data: its payload; empty for one that only carries an id.
        id: where a stream can be resumed; empty if it can't.
        retry_ms: how long the server wants its client to wait before it resumes; None if it didn't say.
    """

    data: bytes
    id: str
    retry_ms: int | None


class EventTooLargeError(ValueError):
    """An event is larger than the limit."""


class EventReader:
    """Cuts a byte stream into events, whatever pieces it arrives in.

    Args:
        limit: bytes of one event.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._id = ""
        self._retry_ms: int | None = None

    def feed(self, piece: bytes) -> Iterator[StreamEvent]:
        """Add a piece; give the events that it completes.

        Raises:
            EventTooLargeError: an event passes the limit.
        """
        start = 0
        while (end := piece.find(b"\n", start)) >= 0:
            self._grow(piece[start:end])
            start = end + 1
            line = bytes(self._line).removesuffix(b"\r")
            self._line.clear()
            event = self._take_line(line)
            if event is not None:
                yield event
        self._grow(piece[start:])

    def _grow(self, part: bytes) -> None:
        self._line += part
        if len(self._line) + self._size > self._limit:
            raise EventTooLargeError(f"an event has more than {self._limit} bytes")

    def _take_line(self, line: bytes) -> StreamEvent | None:
        if not line:
            return self._finish()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(value)
        elif field == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit() and len(value) <= 9:  # noqa: PLR2004 - 11 days
            self._retry_ms = int(value)
        return None

    def _finish(self) -> StreamEvent:
        event = StreamEvent(b"\n".join(self._data), self._id, self._retry_ms)
        self._data, self._size = [], 0
        return event
