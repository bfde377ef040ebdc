"""A small MCP server that runs SQL on the dataset it is pointed at; standard library only, so that it starts at once.

`--slow SECONDS` makes every query take at least so long: time for a test to kill something. `--break` answers every
query with nothing, as a server would that lost its way to the data.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request
from typing import Any

TOOL = {
    "name": "query",
    "description": "Run one SELECT on ClickHouse and return its rows as tab-separated text.",
    "inputSchema": {"type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"]},
}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def run_query(sql: str) -> dict[str, Any]:
    request = urllib.request.Request(
        f"http://{os.environ['DB_HOST']}:{os.environ['DB_PORT']}/?database={os.environ['DB_NAME']}",
        data=sql.encode(),
        headers={
            "X-ClickHouse-User": os.environ["DB_USER"],
            "X-ClickHouse-Key": os.environ["DB_PASSWORD"],
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310 - its own dataset
            return {"content": [{"type": "text", "text": reply.read().decode("utf-8", "replace")}]}
    except urllib.error.HTTPError as error:
        text = error.read().decode("utf-8", "replace")[:500]
    except OSError as error:
        text = f"no connection: {error}"
    return {"content": [{"type": "text", "text": text}], "isError": True}


def answer(request: dict[str, Any], pause: float) -> dict[str, Any] | None:
    match request.get("method"):
        case "initialize":
            return {
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "sql", "version": "1"},
            }
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            time.sleep(pause)
            if "--break" in sys.argv:
                return {"content": [{"type": "text", "text": ""}]}
            return run_query(str(request["params"]["arguments"].get("sql", "")))
        case _:
            return {} if "id" in request else None


def main() -> None:
    pause = float(sys.argv[2]) if sys.argv[1:2] == ["--slow"] else 0.0
    for line in sys.stdin:
        request = json.loads(line)
        result = answer(request, pause)
        if "id" in request and result is not None:
            send({"id": request["id"], "result": result})


if __name__ == "__main__":
    main()
