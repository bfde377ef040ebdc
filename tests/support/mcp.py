"""Makers for the MCP side: odd servers, toolboxes behind a real gateway, and calls by agents."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from proctor.adapters.mcp.launch import DatasetAccess, PlainLauncher
from proctor.adapters.mcp.limits import McpLimits
from proctor.api.server import Server
from proctor.core.ids import CellKey
from proctor.core.trajectory.events import Event, EventKind
from proctor.gateway.attempt import Attempt
from proctor.gateway.attempts import OpenedAttempt
from proctor.gateway.doors import mcp, tools
from proctor.gateway.toolboxes import ServersSpec, Toolboxes
from support.gateway import CELL, RunningGateway, make_suite, run_gateway

SERVERS = Path(__file__).parent / "mcp_servers"
SCENARIO = "error-root-cause"
DATASET = DatasetAccess("127.0.0.1", 1, "agent", "pass-of-dataset", "ds")
LIMITS = McpLimits(start_seconds=20, call_seconds=10, message_bytes=200_000, skipped_bytes=5_000_000, notifications=500)
VERSION = "2025-11-25"


def make_server(mode: str = "", **fields: Any) -> Server:
    """The odd server over standard streams; fields as in a manifest."""
    command = [sys.executable, "-I", str(SERVERS / "odd_server.py"), *(["--start", mode] if mode else [])]
    spec = {"name": "sql", "stdio": {"command": command}, **fields}
    if "allowedTools" not in spec and "deniedTools" not in spec:
        spec["deniedTools"] = []
    return Server.model_validate(spec)


def make_toolboxes(
    server: Server, *, limits: McpLimits = LIMITS, secrets: Mapping[str, str] | None = None, **more: Any
) -> Toolboxes:
    return Toolboxes(
        ServersSpec(
            servers={server.name: server},
            datasets={SCENARIO: more.pop("dataset", DATASET)},
            secrets=secrets or {},
            launcher=more.pop("launcher", None) or PlainLauncher(limits),
            limits=limits,
            search_path=f"{Path(sys.executable).parent}:/usr/bin:/bin",
            **more,
        )
    )


@dataclass
class Cell:
    """An open attempt, its agent's client, and the record."""

    gateway: RunningGateway
    opened: OpenedAttempt
    client: httpx.AsyncClient
    toolboxes: Toolboxes
    ids: int = 0
    session: str = ""

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call through the plain door."""
        response = await self.client.post(f"/tools/{tool}", json=arguments)
        return response.json()

    async def call_text(self, tool: str, **arguments: Any) -> str:
        return str((await self.call(tool, **arguments))["content"][0]["text"])

    async def names(self) -> list[str]:
        response = await self.client.get("/tools")
        assert response.status_code == 200, response.text
        return [tool["name"] for tool in response.json()["tools"]]

    @property
    def attempt(self) -> Attempt:
        return next(iter(self.gateway.attempts.open_attempts.values()))

    async def until_called(self) -> Attempt:
        """Until a call is on its way to the server."""
        async with asyncio.timeout(10):
            while self.attempt.budget.calls == 0:  # noqa: ASYNC110 - the gateway has no event for it
                await asyncio.sleep(0.01)
            await asyncio.sleep(0)
        return self.attempt

    def events(self, kind: EventKind = EventKind.TOOL_CALL) -> list[Event]:
        return [event for event in self.gateway.sink.trajectory() if event.kind is kind]

    def outcomes(self, kind: EventKind = EventKind.TOOL_CALL) -> list[tuple[str, str, str]]:
        return [(event.name, event.status.value, event.error_class) for event in self.events(kind)]

    async def post(self, message: Any, **headers: str) -> httpx.Response:
        """Send one message to the MCP door."""
        sent = {"accept": "application/json, text/event-stream", "content-type": "application/json", **headers}
        if self.session and "mcp-session-id" not in sent:
            sent["mcp-session-id"] = self.session
        return await self.client.post("/mcp", content=json.dumps(message), headers=sent)

    async def initialize(self, version: str = VERSION, **params: Any) -> dict[str, Any]:
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}, **params}
        self.session = ""
        response = await self.request_raw("initialize", params)
        self.session = response.headers.get("mcp-session-id", "")
        await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return dict(response.json())

    async def request_raw(self, method: str, params: Any = None) -> httpx.Response:
        self.ids += 1
        message = {"jsonrpc": "2.0", "id": f"a{self.ids}", "method": method}
        return await self.post(message if params is None else {**message, "params": params})

    async def request(self, method: str, params: Any = None) -> list[dict[str, Any]]:
        """Send a request; what comes back on its stream, the answer last."""
        response = await self.request_raw(method, params)
        return read_messages(response)


def read_messages(response: httpx.Response) -> list[dict[str, Any]]:
    if response.headers["content-type"].startswith("text/event-stream"):
        return [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]
    return [response.json()]


@asynccontextmanager
async def open_cell(
    server: Server,
    *,
    agent: Mapping[str, Any] | None = None,
    probe: bool = False,
    cell: CellKey = CELL,
    parts: Mapping[str, Any] | None = None,
    **more: Any,
) -> AsyncIterator[Cell]:
    """A gateway with one open attempt of a cell over a server under test."""
    toolboxes = make_toolboxes(server, **more)
    suite = make_suite(agent=agent or {"maxToolCalls": 100}).model_copy(update={"servers": (server,)})
    routes = [*tools.routes, *mcp.routes]
    try:
        async with run_gateway(
            tool_routes=routes, suite=suite, open_toolbox=toolboxes.open, probe=toolboxes.probe, **(parts or {})
        ) as gateway:
            if probe:
                await toolboxes.probe()
            opened = await gateway.open(cell)
            async with gateway.agent(opened) as client:
                yield Cell(gateway, opened, client, toolboxes)
    finally:
        await toolboxes.close()


@asynccontextmanager
async def run_odd_http(*args: str) -> AsyncIterator[int]:
    """The odd HTTP server on a free port."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", str(SERVERS / "odd_http.py"), "0", *args, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield int(await process.stdout.readline())
    finally:
        process.kill()
        await process.wait()
        process._transport.close()  # type: ignore[attr-defined]


def find_free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def names(tools_: Sequence[Mapping[str, Any]]) -> list[str]:
    return [tool["name"] for tool in tools_]


def read_peak() -> int:
    """Peak memory of this process, in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")
