"""An MCP server over standard streams that does what each tool's name says; standard library only.

`--start MODE` makes it odd from the beginning: exit, hang, late, no-tools, no-initialize, banner, twice, other-tools.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TOOLS = [
    "echo",
    "fail",
    "fail_in_band",
    "rpc_error",
    "bad_params",
    "hang",
    "die",
    "garbage",
    "half_json",
    "bad_utf8",
    "wrong_shape",
    "huge",
    "endless",
    "flood",
    "progress",
    "log",
    "ask_sampling",
    "change_tools",
    "environment",
    "fork",
    "secret_tool",
    "slow",
    "result_of_size",
    "stray",
    "change_after",
]

CAPABILITIES = ("resources", "prompts", "logging", "tasks")


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def send_raw(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def describe(name: str) -> dict[str, Any]:
    return {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}}


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}], **more}


class Server:
    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.tools = [describe(name) for name in TOOLS]
        if mode == "no-tools":
            self.tools = []
        if mode == "twice":
            self.tools.append(describe("echo"))
        if mode == "other-case":
            self.tools.append(describe("Secret_Tool"))
        if mode == "other-tools":
            self.tools = [{**describe("echo"), "description": "Not what it was."}]
        if mode.startswith("count:"):
            self.tools = self.tools[: 3 + self.count(Path(mode.removeprefix("count:")))]
        if mode.startswith("once:") and self.count(Path(mode.removeprefix("once:"))) > 1:
            sys.exit(4)
        self.params: dict[str, Any] = {}

    @staticmethod
    def count(path: Path) -> int:
        starts = int(path.read_text()) + 1 if path.exists() else 1
        path.write_text(str(starts))
        return starts

    def run(self) -> None:
        if self.mode == "exit":
            sys.stderr.write("cannot start: the password hunter2 is wrong\n")
            sys.exit(3)
        if self.mode == "banner":
            print("Welcome to the odd server!\nversion 1", flush=True)
        if self.mode.startswith("late:"):
            time.sleep(float(self.mode.removeprefix("late:")))
        for line in sys.stdin:
            if self.mode != "hang":
                self.take(json.loads(line))

    def take(self, message: dict[str, Any]) -> None:
        method, id_ = message.get("method"), message.get("id")
        if method is None or id_ is None:
            return
        params = message.get("params", {})
        if method == "initialize":
            if self.mode == "no-initialize":
                send({"id": id_, "error": {"code": -32603, "message": "no"}})
                return
            self.params = params
            answer = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {
                    "tools": {"listChanged": True},
                    "resources": {},
                    "prompts": {},
                    "logging": {},
                    "tasks": {},
                },
                "serverInfo": {"name": "odd", "version": "1"},
                "instructions": json.dumps(params),
            }
            send({"id": id_, "result": answer})
        elif method == "tools/list":
            self.list_tools(id_, params)
        elif method == "tools/call":
            getattr(self, "do_" + params["name"].lower(), self.do_unknown)(id_, params.get("arguments", {}), params)
        elif method == "resources/read":
            send({"id": id_, "result": {"contents": [{"uri": params["uri"], "text": "read"}]}})
        elif method == "ping":
            send({"id": id_, "result": {}})
        else:
            send({"id": id_, "error": {"code": -32601, "message": f"no method {method}", "data": {"seen": method}}})

    def list_tools(self, id_: int, params: dict[str, Any]) -> None:
        """In pages of ten."""
        start = int(params.get("cursor", 0))
        page: dict[str, Any] = {"tools": self.tools[start : start + 10]}
        if start + 10 < len(self.tools):
            page["nextCursor"] = str(start + 10)
        send({"id": id_, "result": page})

    def do_unknown(self, id_: int, _args: Any, params: Any) -> None:
        send({"id": id_, "error": {"code": -32602, "message": f"Unknown tool: {params['name']}"}})

    def do_echo(self, id_: int, args: Any, params: Any) -> None:
        send({"id": id_, "result": text(json.dumps(args), _meta={"seen": params.get("_meta")})})

    def do_secret_tool(self, id_: int, _args: Any, _params: Any) -> None:
        send({"id": id_, "result": text("the secret")})

    def do_fail(self, id_: int, args: Any, _params: Any) -> None:
        send({"id": id_, "result": text(args.get("text", "503 Service Unavailable, 429, ECONNREFUSED"), isError=True)})

    def do_fail_in_band(self, id_: int, args: Any, _params: Any) -> None:
        send({"id": id_, "result": text(json.dumps({"error": args.get("error", "no such table")}), isError=False)})

    def do_rpc_error(self, id_: int, args: Any, _params: Any) -> None:
        send({"id": id_, "error": {"code": args.get("code", -32603), "message": "it broke", "data": {"at": 1}}})

    def do_bad_params(self, id_: int, _args: Any, _params: Any) -> None:
        send({"id": id_, "error": {"code": -32602, "message": "bad params"}})

    def do_hang(self, id_: int, _args: Any, _params: Any) -> None:
        """Never answer."""

    def do_slow(self, id_: int, args: Any, _params: Any) -> None:
        time.sleep(args.get("seconds", 0.2))
        send({"id": id_, "result": text("at last")})

    def do_die(self, id_: int, _args: Any, _params: Any) -> None:
        os._exit(7)

    def do_garbage(self, id_: int, _args: Any, _params: Any) -> None:
        send_raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[NaN' % id_ + b"\n")

    def do_half_json(self, id_: int, _args: Any, _params: Any) -> None:
        send_raw(b'{"jsonrpc":"2.0","result":{"conte\n')

    def do_bad_utf8(self, id_: int, _args: Any, _params: Any) -> None:
        send_raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\xff\xfe"}]}}\n' % id_)

    def do_wrong_shape(self, id_: int, _args: Any, _params: Any) -> None:
        send_raw(b'{"jsonrpc":"2.0","id":%d,"result":"a string"}\n' % id_)

    def do_stray(self, id_: int, _args: Any, _params: Any) -> None:
        print("debug: running", flush=True)
        send({"id": id_, "result": text("fine")})

    def do_huge(self, id_: int, args: Any, _params: Any) -> None:
        send_raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % id_)
        for _ in range(args.get("megabytes", 200)):
            send_raw(b"x" * 1_000_000)
        send_raw(b'"}]}}\n')

    def do_result_of_size(self, id_: int, args: Any, _params: Any) -> None:
        send({"id": id_, "result": text("x" * args["bytes"])})

    def do_endless(self, id_: int, _args: Any, _params: Any) -> None:
        while True:
            send_raw(b"{" + b"x" * 1_000_000)

    def do_flood(self, id_: int, args: Any, _params: Any) -> None:
        for number in range(args.get("count", 10**9)):
            send({"method": "notifications/message", "params": {"level": "info", "data": number}})
        send({"id": id_, "result": text("flooded")})

    def do_progress(self, id_: int, _args: Any, params: Any) -> None:
        token = params["_meta"]["progressToken"]
        for step in (1, 2):
            send({"method": "notifications/progress", "params": {"progressToken": token, "progress": step}})
        send({"method": "notifications/progress", "params": {"progressToken": "another's", "progress": 9}})
        send({"id": id_, "result": text("done")})

    def do_log(self, id_: int, _args: Any, _params: Any) -> None:
        send({"method": "notifications/message", "params": {"level": "info", "data": "working"}})
        send({"id": id_, "result": text("logged")})

    def do_ask_sampling(self, id_: int, args: Any, _params: Any) -> None:
        send({"id": "s1", "method": args.get("method", "sampling/createMessage"), "params": {"messages": []}})
        send({"id": id_, "result": text(json.dumps(json.loads(sys.stdin.readline())))})

    def do_change_tools(self, id_: int, _args: Any, _params: Any) -> None:
        self.tools = [*self.tools, describe("brand_new")]
        send({"method": "notifications/tools/list_changed"})
        send({"id": id_, "result": text("changed")})

    def do_change_after(self, id_: int, _args: Any, _params: Any) -> None:
        send({"id": id_, "result": text("changing")})
        send({"method": "notifications/tools/list_changed"})

    def do_environment(self, id_: int, _args: Any, _params: Any) -> None:
        send({"id": id_, "result": text(json.dumps({"env": dict(os.environ), "pid": os.getpid()}))})

    def do_fork(self, id_: int, args: Any, _params: Any) -> None:
        """Leave a child behind that ignores TERM and holds the pipes."""
        loop = ["/bin/sh", "-c", "trap '' TERM; while :; do sleep 1; done"]
        child = subprocess.Popen(loop, start_new_session=args.get("leave", False))
        send({"id": id_, "result": text(json.dumps({"child": child.pid, "pid": os.getpid()}))})


if __name__ == "__main__":
    Server(sys.argv[2] if len(sys.argv) > 2 else "").run()
