"""A provider of the Messages API that costs next to nothing: one whole message, or the same as a stream.

    python messages.py         a free port is printed

The last message's text says how many bytes of text the reply has, in pieces of `PIECE` bytes when it is streamed.
Standard library only.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from framing import serve

PIECE = 200
USAGE = {"input_tokens": 10, "output_tokens": 5}


def build_message(text: str) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "bench",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": USAGE,
    }


def build_events(size: int) -> Iterator[bytes]:
    opening = build_message("") | {"content": [], "stop_reason": None}
    block = {"type": "text", "text": ""}
    yield render("message_start", message=opening)
    yield render("content_block_start", index=0, content_block=block)
    for start in range(0, size, PIECE):
        delta = {"type": "text_delta", "text": "x" * min(PIECE, size - start)}
        yield render("content_block_delta", index=0, delta=delta)
    yield render("content_block_stop", index=0)
    yield render("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 5})
    yield render("message_stop")


def render(name: str, **fields: object) -> bytes:
    event = f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(event), event)


async def answer(_head: bytes, request: bytes, writer: asyncio.StreamWriter) -> None:
    body = json.loads(request)
    size = int(body["messages"][-1]["content"])
    if not body.get("stream"):
        reply = json.dumps(build_message("x" * size)).encode()
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(reply)
        writer.write(head + reply)
        return
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    for event in build_events(size):
        writer.write(event)
        await writer.drain()
    writer.write(b"0\r\n\r\n")


if __name__ == "__main__":
    asyncio.run(serve(answer, 0))
