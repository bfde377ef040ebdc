"""An MCP server over streamable HTTP that does what each tool's name says; standard library only.

`odd_http.py PORT [TOKEN] [MODE]`: with a token, requests need it as a bearer token. Port 0 prints the one it took. The
mode makes its list of tools odd: no-tools, twice, or changing:N, another list from the Nth time on.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOOLS = [
    "echo",
    "stream",
    "resume",
    "cut",
    "status",
    "lose_session",
    "gzip",
    "big",
    "redirect",
    "hang",
    "garbage",
    "other_id",
    "bad_request",
    "bad_utf8",
    "wrong_shape",
    "huge",
    "huge_stream",
    "garbage_stream",
    "bad_utf8_stream",
    "flood",
    "drip",
    "die",
    "leave_child",
]
SESSIONS: dict[str, dict[str, Any]] = {}
SEEN: list[dict[str, Any]] = []
TOKEN = sys.argv[2] if len(sys.argv) > 2 else ""
MODE = sys.argv[3] if len(sys.argv) > 3 else ""
LISTED: list[None] = []


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


def list_names() -> list[str]:
    LISTED.append(None)
    kind, _, number = MODE.partition(":")
    if kind == "no-tools":
        return []
    changed = kind == "twice" or (kind == "changing" and len(LISTED) >= int(number))
    return [*TOOLS, "echo" if kind == "twice" else "brand_new"] if changed else TOOLS


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args: Any) -> None:
        pass

    def answer(self, status: int, body: bytes = b"", kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def result(self, id_: Any, result: dict[str, Any], **headers: str) -> None:
        self.answer(200, json.dumps({"jsonrpc": "2.0", "id": id_, "result": result}).encode(), **headers)

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, message: dict[str, Any] | None, id_: str = "", retry: int | None = None) -> None:
        lines = (f"id: {id_}\n" if id_ else "") + (f"retry: {retry}\n" if retry is not None else "")
        lines += f"data: {json.dumps({'jsonrpc': '2.0', **message}) if message else ''}\n\n"
        self.wfile.write(lines.encode())
        self.wfile.flush()

    def admitted(self) -> bool:
        if TOKEN and self.headers.get("authorization") != f"Bearer {TOKEN}":
            self.answer(401, b"{}")
            return False
        return True

    def do_HEAD(self) -> None:
        self.answer(405)

    def do_DELETE(self) -> None:
        SESSIONS.pop(self.headers.get("mcp-session-id", ""), None)
        self.answer(204)

    def do_GET(self) -> None:
        last = self.headers.get("last-event-id", "")
        if last.startswith("call-"):
            self.begin_stream()
            self.event({"id": int(last.removeprefix("call-")), "result": text("resumed")}, id_="end")
            return
        if self.headers.get("mcp-session-id") not in SESSIONS:
            self.answer(404)
            return
        self.begin_stream()
        self.event({"method": "notifications/resources/list_changed"}, id_="g1")
        time.sleep(30)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.admitted():
            return
        method, id_ = message.get("method"), message.get("id")
        SEEN.append({"method": method, "version": self.headers.get("mcp-protocol-version")})
        if method == "initialize":
            session = uuid.uuid4().hex
            SESSIONS[session] = {}
            caps = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}}
            self.result(id_, {**caps, "serverInfo": {"name": "odd", "version": "1"}}, mcp_session_id=session)
        elif self.headers.get("mcp-session-id") not in SESSIONS:
            self.answer(404)
        elif id_ is None:
            self.answer(202)
        elif method == "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in list_names()]
            self.result(id_, {"tools": tools})
        else:
            params = message["params"]
            getattr(self, "tool_" + params["name"])(id_, params.get("arguments", {}), params)

    def tool_echo(self, id_: Any, args: Any, _params: Any) -> None:
        self.result(id_, text(json.dumps({"args": args, "seen": SEEN[-1], "x": self.headers.get("x-extra")})))

    def tool_stream(self, id_: Any, _args: Any, params: Any) -> None:
        self.begin_stream()
        token = params.get("_meta", {}).get("progressToken", 0)
        self.event({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
        self.event({"method": "notifications/message", "params": {"level": "info", "data": "working"}})
        self.event({"id": id_, "result": text("streamed")})

    def tool_resume(self, id_: Any, _args: Any, _params: Any) -> None:
        self.begin_stream()
        self.event(None, id_=f"call-{id_}", retry=10)

    def tool_cut(self, id_: Any, _args: Any, _params: Any) -> None:
        self.begin_stream()
        self.event({"method": "notifications/message", "params": {"level": "info", "data": "then nothing"}})

    def tool_status(self, _id: Any, args: Any, _params: Any) -> None:
        self.answer(args["status"], b"no")

    def tool_bad_request(self, id_: Any, _args: Any, _params: Any) -> None:
        error = {"code": -32602, "message": "bad params"}
        self.answer(400, json.dumps({"jsonrpc": "2.0", "id": id_, "error": error}).encode())

    def tool_lose_session(self, _id: Any, _args: Any, _params: Any) -> None:
        SESSIONS.clear()
        self.answer(404)

    def tool_gzip(self, id_: Any, _args: Any, _params: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": id_, "result": text("x" * 1000)}).encode()
        self.answer(200, gzip.compress(body), content_encoding="gzip")

    def tool_big(self, id_: Any, args: Any, _params: Any) -> None:
        self.result(id_, text("x" * args["bytes"]))

    def tool_redirect(self, _id: Any, _args: Any, _params: Any) -> None:
        self.answer(307, location="http://127.0.0.1:1/elsewhere")

    def tool_hang(self, _id: Any, _args: Any, _params: Any) -> None:
        time.sleep(60)

    def tool_garbage(self, _id: Any, _args: Any, _params: Any) -> None:
        self.answer(200, b"<html>oops</html>")

    def tool_bad_utf8(self, id_: Any, _args: Any, _params: Any) -> None:
        self.answer(200, b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\xff\xfe"}]}}' % id_)

    def tool_wrong_shape(self, id_: Any, _args: Any, _params: Any) -> None:
        self.answer(200, b'{"jsonrpc":"2.0","id":%d,"result":"a string"}' % id_)

    def pour(self, head: bytes) -> None:
        """Say 200 MB more."""
        self.wfile.write(head)
        for _ in range(200):
            self.wfile.write(b"x" * 1_000_000)

    def tool_huge(self, id_: Any, _args: Any, _params: Any) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        self.pour(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % id_)

    def tool_huge_stream(self, id_: Any, _args: Any, _params: Any) -> None:
        self.begin_stream()
        self.pour(b'data: {"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % id_)

    def tool_garbage_stream(self, _id: Any, _args: Any, _params: Any) -> None:
        self.begin_stream()
        self.wfile.write(b"data: {half a message\n\n")

    def tool_bad_utf8_stream(self, id_: Any, _args: Any, _params: Any) -> None:
        self.begin_stream()
        self.wfile.write(b'data: {"jsonrpc":"2.0","id":%d,"result":{"text":"\xff\xfe"}}\n\n' % id_)

    def tool_flood(self, _id: Any, _args: Any, _params: Any) -> None:
        self.begin_stream()
        while True:
            self.event({"method": "notifications/message", "params": {"level": "info", "data": "again"}})

    def tool_drip(self, _id: Any, _args: Any, _params: Any) -> None:
        """A byte now and then, so that the connection is never silent."""
        self.begin_stream()
        while True:
            self.wfile.write(b":\n")
            self.wfile.flush()
            time.sleep(0.05)

    def tool_die(self, _id: Any, _args: Any, _params: Any) -> None:
        os._exit(7)

    def tool_leave_child(self, id_: Any, _args: Any, _params: Any) -> None:
        """Leave a child behind that ignores TERM, in a session of its own."""
        loop = ["/bin/sh", "-c", "trap '' TERM; while :; do sleep 1; done"]
        child = subprocess.Popen(loop, start_new_session=True, stdin=subprocess.DEVNULL)
        self.result(id_, text(json.dumps({"child": child.pid})))

    def tool_other_id(self, _id: Any, _args: Any, _params: Any) -> None:
        self.result(424242, text("not yours"))


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_: Any) -> None:
        """A client that has had enough is nothing to tell."""


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever).start()
