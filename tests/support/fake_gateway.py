"""A gateway of a few lines: scripted replies on a Unix socket, and what was asked of it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]

BRIEF: Json = {
    "system": "You are on call.",
    "prompt": "What failed?",
    "model": "m",
    "maxTurns": 5,
    "maxTokens": 400_000,
}
TOOLS: list[Json] = [
    {"name": "run_query", "description": "Runs SQL.", "inputSchema": {"type": "object", "properties": {}}},
    {"name": "odd name/ü"},
]


def say(*texts: str, stop: str = "end_turn") -> Json:
    """An assistant message of text."""
    return _message([{"type": "text", "text": text} for text in texts], stop)


def use(*calls: tuple[str, Any], text: str = "", stop: str = "tool_use") -> Json:
    """An assistant message that calls tools."""
    content: list[Json] = [{"type": "text", "text": text}] if text else []
    content += [
        {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}
        for number, (name, arguments) in enumerate(calls)
    ]
    return _message(content, stop)


def error(kind: str, message: str = "no") -> Json:
    """The body of a refusal."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def _message(content: list[Json], stop: str) -> Json:
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
            "stop_reason": stop, "stop_sequence": None, "usage": usage}  # fmt: skip


def stream_events(message: Json) -> Iterator[Json]:
    """The events as which a message is streamed, in small pieces."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        text = block.get("text")
        started = {**block, "text": ""} if text is not None else {**block, "input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": started}
        whole = text if text is not None else _as_text(block["input"])
        for piece in (whole[at : at + 7] for at in range(0, len(whole), 7)):
            delta = {"type": "text_delta", "text": piece}
            if text is None:
                delta = {"type": "input_json_delta", "partial_json": piece}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": message["stop_reason"]}, "usage": message["usage"]}
    yield {"type": "message_stop"}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@dataclass
class FakeGateway:
    """What it answers, and what it was asked.

    Attributes:
        replies: of the model, in order: a message, or status and error body, or raw bytes of a whole HTTP reply.
        call: answers a tool call: a result, or status and error body.
        requests: method, path and decoded body of all requests.
    """

    replies: list[Any]
    call: Callable[[str, Json], Any] = lambda name, _: {"content": [{"type": "text", "text": name}], "isError": False}
    brief: Any = field(default_factory=lambda: dict(BRIEF))
    tools: Any = field(default_factory=lambda: {"tools": TOOLS})
    chunked: bool = True
    address: str = ""
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)

    @property
    def answer(self) -> str | None:
        """What was put as the answer."""
        found = [body for method, path, body in self.requests if (method, path) == ("PUT", "/answer")]
        return found[-1] if found else None

    @property
    def asked(self) -> list[Json]:
        """The bodies that the model was asked with."""
        return [body for _, path, body in self.requests if path == "/v1/messages"]

    def serve(self, connection: socket.socket) -> None:
        """Answer one request."""
        with connection, connection.makefile("rb") as stream:
            head = b"".join(iter(stream.readline, b"\r\n")).decode()
            if not head:
                return
            method, path, _ = head.split(" ", 2)
            length = next((line.split(":")[1] for line in head.splitlines() if line.startswith("Content-Length")), "0")
            raw = stream.read(int(length)).decode("utf-8", "surrogatepass")
            body = raw if path == "/answer" or not raw else json.loads(raw)
            self.heads.append(head)
            self.requests.append((method, path, body))
            reply = self._route(path, body)
            connection.sendall(reply if isinstance(reply, bytes) else self._encode(*reply))

    def _route(self, path: str, body: Any) -> Any:
        match path:
            case "/brief":
                return _with_status(self.brief)
            case "/tools":
                return _with_status(self.tools)
            case "/answer":
                return 204, None
            case "/v1/messages":
                reply = self.replies.pop(0)
                if isinstance(reply, dict) and body["stream"]:
                    return 200, reply, True
                return _with_status(reply)
            case _:
                return _with_status(self.call(path.removeprefix("/tools/"), body))

    def _encode(self, status: int, body: Any, stream: bool = False) -> bytes:
        head = f"HTTP/1.1 {status} X\r\nConnection: close\r\n"
        if stream:
            events = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in stream_events(body)]
            pieces = [event[at : at + 50].encode() for event in events for at in range(0, len(event), 50)]
            chunks = b"".join(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" for piece in pieces)
            return f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunks + b"0\r\n\r\n"
        payload = b"" if body is None else json.dumps(body).encode()
        return f"{head}Content-Length: {len(payload)}\r\n\r\n".encode() + payload


def _with_status(reply: Any) -> Any:
    return reply if isinstance(reply, tuple | bytes) else (200, reply)


@contextmanager
def run_gateway(folder: Path, gateway: FakeGateway) -> Iterator[FakeGateway]:
    """Serve in a thread until the context ends."""
    path = folder / "gateway.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(0o666)
        listener.listen()
        thread = threading.Thread(target=_accept, args=(listener, gateway))
        thread.start()
        gateway.address = f"unix:{path}"
        try:
            yield gateway
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _accept(listener: socket.socket, gateway: FakeGateway) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        try:
            gateway.serve(connection)
        except ConnectionError:
            continue
