"""`everything.py` behind MCP's streamable HTTP: sessions, streams that can be resumed, and questions to the client.

`everything_http.py` prints the port that it took.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
import uuid
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parent))
import everything

PATIENCE = 20.0
RETRY_MS = 50
LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass
class Session:
    """What is remembered of one client."""

    answers: dict[str, queue.SimpleQueue[dict[str, Any]]] = field(default_factory=dict)
    late: dict[str, queue.SimpleQueue[dict[str, Any]]] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)


SESSIONS: dict[str, Session] = {}


class Call:
    """The stream of one request; what comes after a hang-up waits for the client to come again."""

    def __init__(self, handler: Handler, session: Session) -> None:
        self._handler = handler
        self._session = session
        self._id = uuid.uuid4().hex
        self._late: queue.SimpleQueue[dict[str, Any]] | None = None
        handler.begin_stream()
        handler.write_event(None, id_=self._id)

    def send(self, message: dict[str, Any]) -> None:
        if self._late is None:
            self._handler.write_event(message)
        else:
            self._late.put(message)

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        id_ = uuid.uuid4().hex
        self._session.answers[id_] = answers = queue.SimpleQueue()
        self.send({"id": id_, "method": method, "params": params})
        return answers.get(timeout=PATIENCE)

    def hang_up(self) -> None:
        self._session.late[self._id] = self._late = queue.SimpleQueue()
        self._handler.end_stream()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def reply(self, status: int, message: dict[str, Any] | None = None, **headers: str) -> None:
        body = b"" if message is None else json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def end_stream(self) -> None:
        self.wfile.flush()
        self.connection.shutdown(1)

    def write_event(self, message: dict[str, Any] | None, id_: str = "") -> None:
        lines = f"id: {id_}\nretry: {RETRY_MS}\n" if id_ else ""
        body = json.dumps({"jsonrpc": "2.0", **message}) if message else ""
        self.wfile.write(f"{lines}data: {body}\n\n".encode())
        self.wfile.flush()

    def find_session(self) -> Session | None:
        session = SESSIONS.get(self.headers.get("mcp-session-id", ""))
        if session is None:
            self.reply(404, {"id": None, "error": {"code": -32600, "message": "no such session"}})
        return session

    def is_local(self) -> bool:
        names = [f"//{self.headers['host']}", *([self.headers["origin"]] if "origin" in self.headers else [])]
        local = all(urlsplit(name).hostname in LOCAL for name in names)
        if not local:
            self.reply(403)
        return local

    def do_DELETE(self) -> None:
        session = SESSIONS.pop(self.headers.get("mcp-session-id", ""), None)
        if session is not None:
            session.over.set()
        self.reply(204)

    def do_GET(self) -> None:
        session = self.find_session()
        if session is None:
            return
        self.begin_stream()
        late = session.late.pop(self.headers.get("last-event-id", ""), None)
        if late is not None:
            self.write_event(late.get(timeout=PATIENCE))
        else:
            session.over.wait(PATIENCE)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.is_local():
            self.take(message)

    def take(self, message: dict[str, Any]) -> None:
        method, id_, params = message.get("method"), message.get("id"), message.get("params", {})
        if method == "initialize":
            name = uuid.uuid4().hex
            SESSIONS[name] = session = Session()
            self.reply(200, {"id": id_, "result": everything.METHODS[method](params)}, mcp_session_id=name)
            return
        session = self.find_session()
        if session is None:
            return
        if method is None or id_ is None:
            if id_ in session.answers:
                session.answers.pop(id_).put(message)
            self.reply(202)
        elif method == "tools/call":
            call = Call(self, session)
            call.send({"id": id_, "result": everything.answer(method, params, call)})
        else:
            self.reply(200, {"id": id_, "result": everything.METHODS[method](params)})


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_: Any) -> None:
        """A client that goes away in the middle is nothing to tell."""


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
