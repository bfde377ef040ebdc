"""An MCP server over HTTP that costs next to nothing, so that what is measured is what stands before it.

    python rows.py PORT        0 takes a free one; the port is printed

A query of `cheap_rows` is answered at once, with as many bytes as the argument `bytes` says; any other goes to the
dataset that the DB_… variables name. Standard library only.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import urllib.error
import urllib.request
from typing import Any

from framing import serve

TOOL = {
    "name": "query",
    "description": "Runs one SELECT and returns its rows.",
    "inputSchema": {"type": "object", "properties": {"sql": {"type": "string"}, "bytes": {"type": "integer"}}},
}
ROW = {"service": "checkout", "count": 1234, "message": "upstream timed out", "reading": "<<rows=1234>>"}
BYTES = 2000


def run_query(sql: str) -> dict[str, Any]:
    request = urllib.request.Request(
        f"http://{os.environ['DB_HOST']}:{os.environ['DB_PORT']}/?database={os.environ['DB_DATABASE']}",
        data=sql.encode(),
        headers={"X-ClickHouse-User": os.environ["DB_USER"], "X-ClickHouse-Key": os.environ["DB_PASSWORD"]},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310 - its own dataset
            return {"content": [{"type": "text", "text": reply.read().decode()}], "isError": False}
    except OSError as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}


async def handle(message: dict[str, Any]) -> dict[str, Any] | None:
    match message["method"]:
        case "initialize":
            return {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "rows", "version": "1"},
            }
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            arguments = message["params"]["arguments"]
            sql = arguments.get("sql", "cheap_rows")
            if "cheap_rows" not in sql:
                return await asyncio.to_thread(run_query, sql)
            text = json.dumps(ROW) + "x" * arguments.get("bytes", BYTES)
            return {"content": [{"type": "text", "text": text}], "isError": False}
    return {} if "id" in message else None


async def answer(head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
    if not head.startswith(b"POST"):
        status = b"200 OK" if head.startswith(b"DELETE") else b"405 No"
        writer.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\n\r\n")
        return
    message = json.loads(body)
    result = await handle(message)
    if result is None:
        writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
        return
    payload = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
    start = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: s\r\n"
    writer.write(start + b"content-length: %d\r\n\r\n" % len(payload) + payload)


if __name__ == "__main__":
    asyncio.run(serve(answer, int(sys.argv[1])))
