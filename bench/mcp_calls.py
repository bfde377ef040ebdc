"""What the gateway adds to one MCP call, against the same call made directly over HTTP.

    .venv/bin/python bench/mcp_calls.py [--seconds 20]

Eight cells call a tool at 40 calls a second in all, first straight at an HTTP MCP server, then through `/mcp` of a
gateway in a process of its own. A result of 5 MB then passes, and the gateway's memory is read. Prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "operator")]

CELLS, CALLS_PER_SECOND = 8, 40
VERSION = "2025-11-25"
ROW = {"service": "checkout", "count": 1234, "message": "upstream timed out"}


async def serve_upstream() -> None:
    """A server that costs next to nothing, so that what is measured is the gateway."""
    tools = [{"name": "query", "description": "Runs SQL.", "inputSchema": {"type": "object"}}]

    def answer(message: dict[str, Any]) -> dict[str, Any] | None:
        if message["method"] == "initialize":
            return {
                "protocolVersion": VERSION,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "b", "version": "1"},
            }
        if message["method"] == "tools/list":
            return {"tools": tools}
        if message["method"] == "tools/call":
            size = message["params"]["arguments"].get("bytes", 2000)
            return {"content": [{"type": "text", "text": json.dumps(ROW) + "x" * size}], "isError": False}
        return None

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.lower().split(b"\r\n")
                length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
                body = await reader.readexactly(length)
                if not head.startswith(b"POST"):
                    writer.write(b"HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n")
                    continue
                message = json.loads(body)
                result = answer(message)
                if result is None:
                    writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
                    continue
                payload = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
                head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: s\r\n"
                writer.write(head + b"content-length: %d\r\n\r\n" % len(payload) + payload)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def serve_gateway(port: int) -> None:
    """A gateway with eight open attempts; prints their sockets and tokens."""
    from proctor.adapters.mcp.limits import McpLimits
    from proctor.api.server import Server
    from proctor.gateway.doors import mcp, tools
    from support.gateway import make_suite, run_gateway
    from support.mcp import make_toolboxes

    server = Server.model_validate(
        {"name": "sql", "http": {"url": f"http://127.0.0.1:{port}/mcp"}, "allowedTools": ["query"]}
    )
    toolboxes = make_toolboxes(server, limits=McpLimits())
    suite = make_suite(agent={"maxToolCalls": 1000, "deadlineSeconds": 3600}).model_copy(update={"servers": (server,)})
    async with run_gateway(
        tool_routes=[*tools.routes, *mcp.routes], suite=suite, open_toolbox=toolboxes.open
    ) as gateway:
        opened = [await gateway.open(attempt=number + 1, seconds=3600) for number in range(CELLS)]
        print(json.dumps([[each.socket, each.token] for each in opened]), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


async def start_session(client: httpx.AsyncClient, path: str) -> dict[str, str]:
    params = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    headers = {"accept": "application/json, text/event-stream"}
    message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    response = await client.post(path, json=message, headers=headers)
    response.raise_for_status()
    headers["mcp-session-id"] = response.headers["mcp-session-id"]
    await client.post(path, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
    return headers


async def call(client: httpx.AsyncClient, headers: dict[str, str], id_: int, **arguments: object) -> tuple[float, int]:
    message = {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": {"name": "query", "arguments": arguments}}
    began = time.perf_counter()
    response = await client.post("/mcp", json=message, headers=headers)
    took = time.perf_counter() - began
    response.raise_for_status()
    return took, len(response.content)


async def measure(clients: list[httpx.AsyncClient], seconds: float) -> list[float]:
    """Each client calls at a fixed rate, out of step with the others."""
    period = len(clients) / CALLS_PER_SECOND
    times: list[float] = []

    async def run(client: httpx.AsyncClient, shift: float) -> None:
        headers = await start_session(client, "/mcp")
        await call(client, headers, 1)
        began = time.perf_counter() + shift
        for number in range(int(seconds / period)):
            await asyncio.sleep(max(began + number * period - time.perf_counter(), 0))
            times.append((await call(client, headers, number + 2, query=f"SELECT {number}"))[0])

    await asyncio.gather(*(run(client, index * period / len(clients)) for index, client in enumerate(clients)))
    return times


def read_cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_peak(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024


def summarise(times: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(times, n=100)
    return {"p50_ms": round(cuts[49] * 1000, 2), "p99_ms": round(cuts[98] * 1000, 2)}


async def main(seconds: float) -> None:
    async with AsyncExitStack() as stack:
        upstream = await start("--upstream", stack=stack)
        assert upstream.stdout is not None
        port = int(await upstream.stdout.readline())
        gateway = await start("--gateway", str(port), stack=stack)
        assert gateway.stdout is not None
        doors = json.loads(await gateway.stdout.readline())
        straight = [
            await stack.enter_async_context(httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}")) for _ in doors
        ]
        through = [
            await stack.enter_async_context(
                httpx.AsyncClient(
                    transport=httpx.AsyncHTTPTransport(uds=socket),
                    base_url="http://gateway",
                    headers={"authorization": f"Bearer {token}"},
                )
            )
            for socket, token in doors
        ]
        direct = await measure(straight, seconds)
        cpu = read_cpu(gateway.pid)
        gated = await measure(through, seconds)
        cpu = read_cpu(gateway.pid) - cpu
        before = read_peak(gateway.pid)
        headers = await start_session(through[0], "/mcp")
        took, size = await call(through[0], headers, 99, bytes=5_000_000)
        a, b = summarise(direct), summarise(gated)
        print(
            json.dumps(
                {
                    "cpus": os.cpu_count(),
                    "calls": len(gated),
                    "direct": a,
                    "gateway": b,
                    "added_p50_ms": round(b["p50_ms"] - a["p50_ms"], 2),
                    "added_p99_ms": round(b["p99_ms"] - a["p99_ms"], 2),
                    "ratio_p50": round(b["p50_ms"] / a["p50_ms"], 2),
                    "gateway_cpu_ms_per_call": round(cpu / len(gated) * 1000, 2),
                    "large_result_bytes": size,
                    "large_result_seconds": round(took, 2),
                    "gateway_peak_growth_mb": round((read_peak(gateway.pid) - before) / 1e6, 1),
                },
                indent=1,
            )
        )


async def start(*args: str, stack: AsyncExitStack) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, *args, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )

    async def stop() -> None:
        process.kill()
        await process.wait()

    stack.push_async_callback(stop)
    return process


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--upstream", action="store_true")
    parser.add_argument("--gateway", type=int)
    asked = parser.parse_args()
    if asked.upstream:
        asyncio.run(serve_upstream())
    elif asked.gateway:
        asyncio.run(serve_gateway(asked.gateway))
    else:
        asyncio.run(main(asked.seconds))
