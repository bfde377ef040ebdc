"""An MCP server over HTTP that answers nobody without an account, and knows no data before it is given a source.

`accounts_server.py PORT`: port 0 prints the one it took. `ADMIN_TOKEN` may make accounts and sources:

    POST /accounts {"name"}            → {"token"}: the same for the same name
    POST /sources {"host", "port", …}  → {"id"}: with an account's token; the same for the same source

The endpoint of a source is `/mcp/ID`. Every request there needs the account's token, and the team's name as `X-Team`.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ADMIN = os.environ.get("ADMIN_TOKEN", "admin")
TEAM = os.environ.get("TEAM", "blue")
TOKENS: set[str] = set()
SOURCES: dict[str, dict[str, str]] = {}
MADE: dict[str, int] = {"accounts": 0, "sources": 0}
TOOLS = [
    {
        "name": "query",
        "description": "Run one SELECT and return its rows.",
        "inputSchema": {"type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"]},
    },
    {"name": "made", "description": "How often accounts and sources were made.", "inputSchema": {"type": "object"}},
    {"name": "headers", "description": "Shows what it was sent.", "inputSchema": {"type": "object"}},
]


def token_of(admin: str, account: str) -> str:
    return hashlib.sha256(f"{admin}/{account}".encode()).hexdigest()


def run_query(source: dict[str, str], sql: str) -> dict[str, Any]:
    request = urllib.request.Request(
        f"http://{source['host']}:{source['port']}/?database={source['database']}",
        data=sql.encode(),
        headers={"X-ClickHouse-User": source["user"], "X-ClickHouse-Key": source["password"]},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310 - the source's own dataset
            return {"content": [{"type": "text", "text": reply.read().decode("utf-8", "replace")}]}
    except urllib.error.HTTPError as error:
        text = error.read().decode("utf-8", "replace")[:500]
    except OSError as error:
        text = f"no connection: {error}"
    return {"content": [{"type": "text", "text": text}], "isError": True}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def reply(self, status: int, value: Any = None) -> None:
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @property
    def bearer(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")

    def do_HEAD(self) -> None:
        self.reply(405)

    def do_GET(self) -> None:
        self.reply(405)

    def do_DELETE(self) -> None:
        self.reply(405)

    def do_POST(self) -> None:
        value = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/accounts" and self.bearer == ADMIN:
            token = token_of(ADMIN, value["name"])
            TOKENS.add(token)
            MADE["accounts"] += 1
            self.reply(200, {"token": token})
        elif self.bearer not in TOKENS:
            self.reply(401)
        elif self.path == "/sources":
            name = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]
            SOURCES[name] = value
            MADE["sources"] += 1
            self.reply(200, {"id": name})
        elif self.headers.get("x-team") != TEAM:
            self.reply(403)
        elif not self.path.startswith("/mcp/") or self.path[5:] not in SOURCES:
            self.reply(404)
        else:
            self.speak(SOURCES[self.path[5:]], value)

    def speak(self, source: dict[str, str], message: dict[str, Any]) -> None:
        if "id" not in message:
            self.reply(202)
            return
        params = message.get("params", {})
        self.reply(
            200, {"jsonrpc": "2.0", "id": message["id"], "result": self.answer(source, message["method"], params)}
        )

    def answer(self, source: dict[str, str], method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            server = {"name": "accounts", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
        if method == "tools/list":
            return {"tools": TOOLS}
        if params["name"] == "query":
            return run_query(source, str(params.get("arguments", {}).get("sql", "")))
        shown = MADE if params["name"] == "made" else {"headers": dict(self.headers), "source": source}
        return {"content": [{"type": "text", "text": json.dumps(shown)}]}


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
