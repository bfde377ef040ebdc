"""What the gateway adds to a call, against the same call made directly over HTTP: of an MCP tool, and of a model.

    .venv/bin/python bench/gateway_calls.py [--seconds 20]

Eight cells make 40 calls a second in all, in turn straight at a server and through a gateway in a process of its own,
which records what passes into a spool on disk. Then something large passes, and the growth of the gateway's memory is
read. Servers and client are the same on both ways, and cost little.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[1]
SERVERS = ROOT / "bench" / "servers"
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "operator")]

CELLS, CALLS_PER_SECOND, TURNS = 8, 40, 4
MOST_P50_MS, MOST_P99_MS = 3.0, 15.0
LARGE_BYTES = 5_000_000
VERSION = "2025-11-25"
MODEL = "bench"
KEY = "sk-bench-0123456789"

Call = Callable[[httpx.AsyncClient, int], Awaitable[int]]


class AcknowledgeAll:
    """A store that takes everything at once: what a real one costs is not on a call's way."""

    async def write(self, batch: object) -> None:
        """Keep nothing."""


async def serve_gateway(tools_port: int, model_port: int) -> None:
    """A gateway with eight open attempts; prints their sockets and tokens."""
    from proctor.adapters.clickhouse.spool import SpooledWriter
    from proctor.adapters.mcp.limits import McpLimits
    from proctor.adapters.models.messages_client import MessagesClient, ProviderAddress
    from proctor.api.server import Server
    from proctor.bootstrap.record_store import SpoolSink
    from proctor.core.ids import CellKey
    from proctor.gateway.doors import mcp, tools
    from support.gateway import make_suite, run_gateway
    from support.mcp import make_toolboxes

    url = f"http://127.0.0.1:{tools_port}/mcp"
    server = Server.model_validate({"name": "sql", "http": {"url": url}, "allowedTools": ["query"]})
    toolboxes = make_toolboxes(server, limits=McpLimits())
    address = f"http://127.0.0.1:{model_port}"
    model = {"model": MODEL, "secretKeyRef": {"name": "s", "key": "k"}, "baseUrl": address}
    agent = {"maxTurns": 500, "maxToolCalls": 1000, "deadlineSeconds": 3600, "maxTokens": 2_000_000}
    suite = make_suite(models=[{"name": "bench", "anthropic": model}], agent=agent)
    with tempfile.TemporaryDirectory() as folder:
        writer = SpooledWriter(AcknowledgeAll(), Path(folder))
        await writer.start()
        async with run_gateway(
            tool_routes=[*tools.routes, *mcp.routes],
            suite=suite.model_copy(update={"servers": (server,)}),
            open_toolbox=toolboxes.open,
            open_provider=lambda _: MessagesClient(ProviderAddress(address, KEY)),
            sink=SpoolSink(writer),
        ) as gateway:
            cell = CellKey("error-root-cause", "sql", "bench", 1)
            opened = [await gateway.open(cell, attempt=number + 1, seconds=3600) for number in range(CELLS)]
            print(json.dumps([[each.socket, each.token] for each in opened]), flush=True)
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        await writer.close()


class ToolCall:
    """A call of a tool through `/mcp`; each client has a session of its own."""

    def __init__(self, size: int = 2000) -> None:
        self._size = size
        self._sessions: dict[httpx.AsyncClient, dict[str, str]] = {}

    async def __call__(self, client: httpx.AsyncClient, number: int) -> int:
        """Make one; return the bytes of its answer."""
        if client not in self._sessions:
            self._sessions[client] = await self._open(client)
        params = {"name": "query", "arguments": {"sql": f"cheap_rows {number}", "bytes": self._size}}
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        return await post(client, "/mcp", message, self._sessions[client])

    async def _open(self, client: httpx.AsyncClient) -> dict[str, str]:
        params = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        headers = {"accept": "application/json, text/event-stream"}
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        response = await client.post("/mcp", json=message, headers=headers)
        response.raise_for_status()
        headers["mcp-session-id"] = response.headers["mcp-session-id"]
        await client.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
        return headers


@dataclass
class ModelCall:
    """A call of a model, streamed or not, whose reply has so many bytes of text."""

    stream: bool
    size: int = 2000

    async def __call__(self, client: httpx.AsyncClient, number: int) -> int:
        """Make one; return the bytes of its answer."""
        messages = [
            {"role": "user", "content": f"question {number}"},
            {"role": "assistant", "content": "an answer " * 100},
            {"role": "user", "content": str(self.size)},
        ]
        body = {"model": MODEL, "max_tokens": 100, "messages": messages, "stream": self.stream}
        return await post(client, "/v1/messages", body, {"anthropic-version": "2023-06-01"})


async def post(client: httpx.AsyncClient, path: str, body: dict[str, Any], headers: dict[str, str]) -> int:
    size = 0
    async with client.stream("POST", path, json=body, headers=headers) as response:
        async for piece in response.aiter_raw():
            size += len(piece)
        response.raise_for_status()
    return size


async def measure(clients: list[httpx.AsyncClient], call: Call, seconds: float) -> list[float]:
    """Each client calls at a fixed rate, out of step with the others."""
    period = len(clients) / CALLS_PER_SECOND
    times: list[float] = []

    async def run(client: httpx.AsyncClient, shift: float) -> None:
        await call(client, 1)
        start = time.perf_counter() + shift
        for number in range(int(seconds / period)):
            await asyncio.sleep(max(start + number * period - time.perf_counter(), 0))
            began = time.perf_counter()
            await call(client, number + 2)
            times.append(time.perf_counter() - began)

    await asyncio.gather(*(run(client, index * period / len(clients)) for index, client in enumerate(clients)))
    return times


def read_cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_peak(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024


def quantiles(times: list[float]) -> tuple[float, float]:
    cuts = statistics.quantiles(times, n=100)
    return cuts[49] * 1000, cuts[98] * 1000


@dataclass
class Ways:
    """Clients of one kind of server: straight at it, and through the gateway."""

    straight: list[httpx.AsyncClient]
    through: list[httpx.AsyncClient]
    gateway: int
    direct: list[float] = field(default_factory=list)
    gated: list[float] = field(default_factory=list)

    async def compare(self, name: str, call: Call, seconds: float) -> None:
        """Print what the gateway adds; the ways take turns, as the machine's speed may change."""
        cpu, self.direct, self.gated = 0.0, [], []
        for _ in range(TURNS):
            self.direct += await measure(self.straight, call, seconds / TURNS)
            before = read_cpu(self.gateway)
            self.gated += await measure(self.through, call, seconds / TURNS)
            cpu += read_cpu(self.gateway) - before
        (p50, p99), (gated50, gated99) = quantiles(self.direct), quantiles(self.gated)
        added50, added99 = gated50 - p50, gated99 - p99
        print(
            f"{name}: directly p50 {p50:.2f} ms, p99 {p99:.2f} ms; the gateway adds p50 {added50:.2f} ms "
            f"(× {added50 / MOST_P50_MS:.2f} of {MOST_P50_MS:g}), p99 {added99:.2f} ms "
            f"(× {added99 / MOST_P99_MS:.2f} of {MOST_P99_MS:g}); {cpu / len(self.gated) * 1000:.2f} ms CPU a call"
        )

    async def pass_large(self, name: str, call: Call) -> None:
        """Print what something large does to the gateway's memory."""
        before, began = read_peak(self.gateway), time.perf_counter()
        size = await call(self.through[0], 1)
        took = time.perf_counter() - began
        growth = read_peak(self.gateway) - before
        print(f"{name} of {size / 1e6:.1f} MB: {took:.2f} s, the gateway's peak grows by {growth / 1e6:.1f} MB")


async def main(seconds: float) -> None:
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}")
    async with AsyncExitStack() as stack:
        _, line = await start(SERVERS / "rows.py", "0", stack=stack)
        tools = int(line)
        _, line = await start(SERVERS / "messages.py", stack=stack)
        models = int(line)
        gateway, line = await start(Path(__file__), "--gateway", str(tools), str(models), stack=stack)
        through = [
            await connect(
                stack,
                "http://gateway",
                transport=httpx.AsyncHTTPTransport(uds=socket),
                headers={"authorization": f"Bearer {token}"},
            )
            for socket, token in json.loads(line)
        ]
        mcp = Ways([await connect(stack, f"http://127.0.0.1:{tools}") for _ in through], through, gateway)
        model = Ways([await connect(stack, f"http://127.0.0.1:{models}") for _ in through], through, gateway)
        await mcp.compare("MCP call", ToolCall(), seconds)
        await model.compare("model call", ModelCall(stream=False), seconds)
        await model.compare("model call, streamed", ModelCall(stream=True), seconds)
        await mcp.pass_large("MCP result", ToolCall(LARGE_BYTES))
        await model.pass_large("model reply, streamed", ModelCall(stream=True, size=LARGE_BYTES))


async def connect(stack: AsyncExitStack, url: str, **options: Any) -> httpx.AsyncClient:  # noqa: ANN401 - httpx's
    return await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=60, trust_env=False, **options))


async def start(script: Path, *words: str, stack: AsyncExitStack) -> tuple[int, bytes]:
    """Start a script; return its process id and the first line that it prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )

    async def stop() -> None:
        process.kill()
        await process.wait()

    stack.push_async_callback(stop)
    assert process.stdout is not None
    return process.pid, await process.stdout.readline()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--gateway", type=int, nargs=2, metavar="PORT", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    asyncio.run(serve_gateway(*asked.gateway) if asked.gateway else main(asked.seconds))
