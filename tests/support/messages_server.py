"""A small real server that speaks the Anthropic Messages API, streaming and not, with faults on request.

In a test:

    with serve_messages(play=my_function, key="sk-test") as server:
        server.faults.append(Overloaded(retry_after="1"))
        ...  # point a model at server.url

From a shell, as the model of a suite (`anthropic: {model: claude-test, secretKeyRef: …, baseUrl: http://127.0.0.1:PORT}`,
run with `--allow-host 127.0.0.1:PORT`):

    PYTHONPATH=operator:tests python -m support.messages_server --port 8399 --key sk-test \
        --scenario scenarios/error-root-cause --policy newest --sql-tool run_query=query

It is strict where the real one is: key, version, model, and that every tool call is answered by a tool result.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Message = dict[str, Any]
Play = Callable[[Message], Message]

MODEL = "claude-test"
VERSIONS = ("2023-06-01", "2026-10-21")
SAMPLING = {"temperature", "top_p", "top_k"}
KEY = "sk-ant-test-key-0123456789"


@dataclass(frozen=True)
class Failing:
    """An error instead of a message."""

    status: int
    type: str
    message: str = "made for a test"
    retry_after: str | None = None


@dataclass(frozen=True)
class FailingInStream:
    """An error event inside a stream that began with status 200, after some events."""

    type: str = "overloaded_error"
    after_events: int = 1


@dataclass(frozen=True)
class Cut:
    """The connection breaks after some events of a stream, or in the middle of a plain reply."""

    after_events: int = 1


@dataclass(frozen=True)
class Raw:
    """Any status, headers and body."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
    body: bytes = b"not json"


@dataclass(frozen=True)
class Slow:
    """The reply, but later."""

    seconds: float = 1.0


@dataclass(frozen=True)
class Held:
    """The reply, but not before an event is set: for tests that must not depend on time."""

    until: threading.Event


Fault = Failing | FailingInStream | Cut | Raw | Slow | Held


def overloaded(retry_after: str | None = None) -> Failing:
    """The provider's 529."""
    return Failing(529, "overloaded_error", "Overloaded", retry_after)


def rate_limited(retry_after: str | None = None) -> Failing:
    """The provider's 429."""
    return Failing(429, "rate_limit_error", "slow down", retry_after)


@dataclass
class Seen:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: Message


@dataclass
class MessagesServer:
    """A running server.

    Attributes:
        url: its base URL.
        host: host and port.
        play: gives the reply to a request.
        faults: taken one per request, before anything else; None among them lets a request through.
        fault_of: says for a request that none of those was taken for whether, and how, it fails.
        seen: all requests.
        arrived: set once there is one.
    """

    url: str
    host: str
    play: Play
    key: str
    models: frozenset[str]
    faults: deque[Fault | None] = field(default_factory=deque)
    fault_of: Callable[[Message], Fault | None] = lambda _: None
    seen: list[Seen] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)


def reply_text(text: str, *, stop_reason: str = "end_turn", **usage: int) -> Message:
    """A message that says something."""
    return _message([{"type": "text", "text": text}], stop_reason, usage)


def reply_tool(
    name: str, arguments: Mapping[str, Any], *, id_: str = "toolu_1", text: str = "", **usage: int
) -> Message:
    """A message that calls a tool."""
    said = [{"type": "text", "text": text}] if text else []
    return _message([*said, {"type": "tool_use", "id": id_, "name": name, "input": dict(arguments)}], "tool_use", usage)


def _message(content: list[dict[str, Any]], stop_reason: str, usage: Mapping[str, int]) -> Message:
    counts = {"input_tokens": 20, "output_tokens": 7, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    return {
        "id": "msg_test",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {**counts, **usage},
    }


@contextmanager
def serve_messages(
    play: Play | None = None, *, key: str = KEY, models: frozenset[str] = frozenset({MODEL}), port: int = 0
) -> Iterator[MessagesServer]:
    """Serve on loopback until the block is left."""
    httpd = _Server(("127.0.0.1", port), _Handler)
    host = f"127.0.0.1:{httpd.server_address[1]}"
    server = MessagesServer(f"http://{host}", host, play or (lambda _: reply_text("the cart database")), key, models)
    httpd.state = server
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    state: MessagesServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that leave are part of the tests."""


class _CutError(Exception):
    """The connection is to be broken here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Keep quiet."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", "0")))
        try:
            self._answer(raw)
        except _CutError:
            self.close_connection = True
            self.connection.close()

    def _answer(self, raw: bytes) -> None:
        state = self.server.state
        try:
            body = json.loads(raw)
        except ValueError:
            body = {}
        state.seen.append(Seen(self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        state.arrived.set()
        fault = state.faults.popleft() if state.faults else state.fault_of(body)
        match fault:
            case Failing():
                self._fail(fault)
                return
            case Raw():
                self._send(fault.status, dict(fault.headers), fault.body)
                return
            case Slow():
                time.sleep(fault.seconds)
            case Held():
                fault.until.wait(30)
            case _:
                pass
        problem = self._find_problem(body)
        if problem is not None:
            self._fail(problem)
            return
        message = {**state.play(body), "model": body["model"]}
        if body.get("stream") is True:
            self._stream(message, fault)
        else:
            whole = json.dumps(message).encode()
            if isinstance(fault, Cut):
                self._head(200, {"content-type": "application/json", "content-length": str(len(whole))})
                self.wfile.write(whole[: len(whole) // 2])
                raise _CutError
            self._send(200, {"content-type": "application/json", "request-id": "req_test"}, whole)

    def _find_problem(self, body: Message) -> Failing | None:
        state, version = self.server.state, self.headers.get("anthropic-version")
        if state.key not in (
            self.headers.get("x-api-key"),
            self.headers.get("authorization", "").removeprefix("Bearer "),
        ):
            return Failing(401, "authentication_error", "invalid x-api-key")
        if self.path.partition("?")[0] != "/v1/messages":
            return Failing(404, "not_found_error", "no such path")
        if version not in VERSIONS or (version == VERSIONS[-1] and SAMPLING & set(body)):
            return Failing(400, "invalid_request_error", "anthropic-version: unknown, or has no such parameter")
        if body.get("model") not in state.models:
            return Failing(404, "not_found_error", f"model: {body.get('model')}")
        if not isinstance(body.get("max_tokens"), int) or not body.get("messages"):
            return Failing(400, "invalid_request_error", "max_tokens and messages are required")
        return _find_unanswered(body["messages"])

    def _stream(self, message: Message, fault: Fault | None) -> None:
        self._head(
            200,
            {
                "content-type": "text/event-stream; charset=utf-8",
                "transfer-encoding": "chunked",
                "request-id": "req_test",
            },
        )
        for number, (name, payload) in enumerate(render_events(message)):
            if isinstance(fault, Cut) and number == fault.after_events:
                raise _CutError
            if isinstance(fault, FailingInStream) and number == fault.after_events:
                self._event("error", {"type": "error", "error": {"type": fault.type, "message": "Overloaded"}})
                break
            self._event(name, payload)
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, name: str, payload: Mapping[str, Any]) -> None:
        piece = f"event: {name}\ndata: {json.dumps(payload)}\n\n".encode()
        self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        self.wfile.flush()

    def _fail(self, failing: Failing) -> None:
        body = {"type": "error", "error": {"type": failing.type, "message": failing.message}, "request_id": "req_test"}
        headers = {"content-type": "application/json"}
        if failing.retry_after is not None:
            headers["retry-after"] = failing.retry_after
        self._send(failing.status, headers, json.dumps(body).encode())

    def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self._head(status, {**headers, "content-length": str(len(body))})
        self.wfile.write(body)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


def _find_unanswered(messages: list[Message]) -> Failing | None:
    """The real API refuses a conversation in which a tool call is not answered by the very next message."""
    open_calls: set[str] = set()
    for message in messages:
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        if message.get("role") == "user":
            open_calls -= {block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"}
        if open_calls:
            return Failing(400, "invalid_request_error", "tool_use ids without tool_result blocks")
        if message.get("role") == "assistant":
            open_calls = {block["id"] for block in blocks if block.get("type") == "tool_use"}
    return None


def render_events(message: Message) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events that bring a message, pings included, texts and arguments in pieces."""
    usage = message["usage"]
    opening = {**message, "content": [], "stop_reason": None, "stop_sequence": None}
    opening["usage"] = {**usage, "output_tokens": 1}
    yield "message_start", {"type": "message_start", "message": opening}
    for index, block in enumerate(message["content"]):
        yield from _render_block(index, block)
        if index == 0:
            yield "ping", {"type": "ping"}
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": message["stop_sequence"]}
    yield (
        "message_delta",
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage["output_tokens"]}},
    )
    yield "message_stop", {"type": "message_stop"}


def _render_block(index: int, block: Message) -> Iterator[tuple[str, dict[str, Any]]]:
    if block["type"] == "tool_use":
        opening, deltas = {**block, "input": {}}, _input_deltas(block)
    elif block["type"] == "thinking":
        opening = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    else:
        opening = {**block, "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
    yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": opening}
    for delta in deltas:
        yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": index}


def _input_deltas(block: Message) -> list[dict[str, Any]]:
    pieces = ["", *_pieces(json.dumps(block["input"]))]
    return [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


def _pieces(text: str, size: int = 24) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def play_policy(scenario: Path, policy: str, sql_tools: Mapping[str, str]) -> Play:
    """Play a scenario's scripted policy, through whichever SQL tool is offered."""
    from proctor.core.agents.scripted import ScriptContext, SqlTool, reply
    from proctor.core.scenarios.policies import load_policies

    policies = load_policies(scenario)

    def play(body: Message) -> Message:
        offered = [tool["name"] for tool in body.get("tools", [])]
        found = next((name for name in sql_tools if any(tool.endswith(name) for tool in offered)), None)
        tool = SqlTool(found, sql_tools[found]) if found else None
        return reply(policy, body, ScriptContext(sql_tool=tool, policies=policies))

    return play


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="A local server that speaks the Anthropic Messages API.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--key", default=KEY)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--scenario", type=Path, required=True, help="a scenario's folder")
    parser.add_argument("--policy", default="newest")
    parser.add_argument("--sql-tool", action="append", default=[], metavar="TOOL=ARGUMENT")
    options = parser.parse_args()
    tools = dict(entry.split("=", 1) for entry in options.sql_tool or ["run_query=query"])
    play = play_policy(options.scenario, options.policy, tools)
    try:
        with serve_messages(play, key=options.key, models=frozenset({options.model}), port=options.port) as server:
            sys.stdout.write(f"{server.url}\n")
            sys.stdout.flush()
            threading.Event().wait()
    except OSError as error:
        parser.error(f"--port {options.port}: {error.strerror}")


if __name__ == "__main__":
    main()
