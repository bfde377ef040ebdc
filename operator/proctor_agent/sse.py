"""One assistant message out of a stream of the Messages API, piece by piece."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from proctor_agent.failures import Malformed, Refused, Unreachable

Json = dict[str, object]

_MAX_EVENT_BYTES = 16 * 1024 * 1024

_TEXT_OF_DELTA = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
"""Which field of a block a delta adds to; it has the same name in both."""


def read_message(pieces: Iterable[bytes]) -> Json:
    """Read a stream to its ``message_stop``.

    A ``tool_use`` block whose arguments are not one JSON object keeps them as text, under ``input``.

    Raises:
        Refused: the stream brings an error.
        Unreachable: it ends before the message does.
        Malformed: it is not a stream of the Messages API.
    """
    reading = _Reading()
    for data in _events(pieces):
        try:
            event = json.loads(data)
            if reading.take(event):
                return reading.message
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as e:
            raise Malformed(f"the stream holds no event of the Messages API: {e!r}") from e
    raise Unreachable("the stream ended before the message did")


class _Reading:
    def __init__(self) -> None:
        self.message: Json = {}
        self._blocks: list[Json] = []
        self._arguments: dict[int, list[str]] = {}

    def take(self, event: dict[str, object]) -> bool:
        """Take one event; True once the message is whole. Events of unknown types are skipped, as the API asks."""
        match event:
            case {"type": "message_start", "message": dict(message)}:
                self.message = {**message, "content": self._blocks}
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                if index != len(self._blocks):
                    raise Malformed(f"content block {index} comes after {len(self._blocks)} blocks")
                self._blocks.append(dict(block))
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)}:
                self._add(index, delta)
            case {"type": "message_delta", "delta": dict(delta)}:
                self.message.update(delta)
            case {"type": "message_stop"}:
                self._close_arguments()
                return True
            case {"type": "error", "error": {"type": kind, "message": text}}:
                raise Refused(200, str(kind), str(text))
        return False

    def _add(self, index: int, delta: dict[str, str]) -> None:
        kind = delta["type"]
        if kind == "input_json_delta":
            self._arguments.setdefault(index, []).append(delta["partial_json"])
        elif kind in _TEXT_OF_DELTA:
            field = _TEXT_OF_DELTA[kind]
            block = self._blocks[index]
            # Deltas are few and short here: the model writes an answer, not a file.
            block[field] = f"{block.get(field, '')}{delta[field]}"

    def _close_arguments(self) -> None:
        for index, parts in self._arguments.items():
            text = "".join(parts)
            try:
                self._blocks[index]["input"] = json.loads(text) if text.strip() else {}
            except (ValueError, RecursionError):
                self._blocks[index]["input"] = text


def _events(pieces: Iterable[bytes]) -> Iterator[bytes]:
    data: list[bytes] = []
    for line in _lines(pieces):
        if not line and data:
            yield b"\n".join(data)
            data = []
        elif line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest: list[bytes] = []
    size = 0
    for piece in pieces:
        *lines, last = piece.split(b"\n")
        for line in lines:
            yield b"".join([*rest, line]).removesuffix(b"\r")
            rest, size = [], 0
        rest.append(last)
        size += len(last)
        if size > _MAX_EVENT_BYTES:
            raise Malformed(f"one line of the stream has more than {_MAX_EVENT_BYTES} bytes")
