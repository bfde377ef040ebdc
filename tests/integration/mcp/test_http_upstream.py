"""Servers over streamable HTTP and over TCP: sessions, headers, streams and faults."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from proctor.api.server import Server
from proctor.core.trajectory.events import EventKind
from support.mcp import LIMITS, SCENARIO, SERVERS, is_alive, make_server, open_cell, run_odd_http


def make_http_server(port: int, **fields: object) -> Server:
    spec = {"name": "sql", "http": {"url": f"http://127.0.0.1:{port}/mcp"}, "deniedTools": ["redirect"], **fields}
    return Server.model_validate(spec)


async def test_headers_and_version_go_with_every_request() -> None:
    """M-A4, S17: plain and secret headers reach the server, and the agreed protocol version; the agent sees neither."""
    headers = [
        {"name": "Authorization", "secretKeyRef": {"name": "t", "key": "k"}},
        {"name": "X-Extra", "value": "plain"},
    ]
    async with run_odd_http("tok3n") as port:
        server = make_http_server(port, headers=headers)
        async with open_cell(server, secrets={"t/k": "Bearer tok3n"}, probe=True) as cell:
            seen = json.loads(await cell.call_text("echo", a=1))
            assert seen == {
                "args": {"a": 1},
                "seen": {"method": "tools/call", "version": "2025-11-25"},
                "x": "plain",
            }


async def test_a_wrong_token_shows_in_preflight() -> None:
    """A server that refuses its headers is named before any cell starts."""
    async with run_odd_http("tok3n") as port, open_cell(make_http_server(port)) as cell:
        (probed,) = (await cell.toolboxes.probe())["servers"]
        assert "HTTP status 401" in probed["error"]


@pytest.mark.parametrize(
    ("tool", "arguments", "status", "error_class"),
    [
        ("bad_request", {}, "agent_error", "-32602"),
        ("status", {"status": 500}, "server_error", "http_500"),
        ("status", {"status": 503}, "infra_error", "http_503"),
        ("status", {"status": 429}, "infra_error", "http_429"),
        ("status", {"status": 401}, "infra_error", "http_401"),
        ("status", {"status": 307}, "server_error", "http_307"),
        ("lose_session", {}, "server_error", "session_lost"),
        ("cut", {}, "server_error", "exited"),
        ("gzip", {}, "server_error", "invalid_message"),
        ("garbage", {}, "server_error", "invalid_message"),
        ("other_id", {}, "server_error", "invalid_message"),
        ("big", {"bytes": 250_000}, "server_error", "result_too_large"),
        ("hang", {}, "server_error", "timeout"),
        ("big", {"bytes": 150_000}, "ok", ""),
        ("stream", {}, "ok", ""),
        ("resume", {}, "ok", ""),
    ],
)
async def test_each_failure_is_someones(tool: str, arguments: dict[str, object], status: str, error_class: str) -> None:
    """Grading rule 8: HTTP status, JSON-RPC code and how the connection failed decide; the cell goes on."""
    limits = replace(LIMITS, call_seconds=1)
    async with run_odd_http() as port, open_cell(make_http_server(port), limits=limits) as cell:
        reply = await cell.call(tool, **arguments)
        assert cell.outcomes() == [(tool, status, error_class)]
        assert reply["isError"] is (status != "ok")
        assert "args" in json.loads(await cell.call_text("echo"))
        assert cell.outcomes()[-1] == ("echo", "ok", "")


async def test_a_stream_passes_progress_and_log() -> None:
    """Notifications of a stream reach the agent on its own call's stream."""
    async with run_odd_http() as port, open_cell(make_http_server(port)) as cell:
        await cell.initialize()
        meta = {"progressToken": 7}
        messages = await cell.request("tools/call", {"name": "stream", "arguments": {}, "_meta": meta})
        assert [message.get("method") for message in messages] == [
            "notifications/progress",
            "notifications/message",
            None,
        ]
        assert messages[0]["params"]["progressToken"] == 7


async def test_the_servers_own_stream_is_passed_on() -> None:
    """What an HTTP server says outside any request is recorded and kept for the agent."""
    async with run_odd_http() as port, open_cell(make_http_server(port)) as cell:
        await cell.initialize()
        headers = {"mcp-session-id": cell.session, "accept": "text/event-stream"}
        async with asyncio.timeout(10), cell.client.stream("GET", "/mcp", headers=headers) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data: "):
                    assert json.loads(line[6:])["method"] == "notifications/resources/list_changed"
                    break
        assert cell.outcomes(EventKind.MCP_MESSAGE)[0][0] == "notifications/resources/list_changed"


async def test_a_server_that_is_not_there_is_infrastructure_when_it_runs_elsewhere() -> None:
    """Grading rule 8: no connection to a url says nothing about the agent, nor about the server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with open_cell(make_http_server(port)) as cell:
        reply = await cell.call("echo")
        assert reply["isError"] is True
        assert cell.outcomes() == [("echo", "infra_error", "unreachable")]


async def test_a_started_http_server_is_shared_and_ended() -> None:
    """M-A5: one process per server and dataset, with the bare environment, gone when the gateway ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-I", str(SERVERS / "odd_http.py"), str(port)]
    server = Server.model_validate(
        {"name": "sql", "http": {"command": command, "port": port}, "allowedTools": ["echo"]}
    )
    async with open_cell(server, probe=True) as cell:
        await cell.call("echo")
        second = await cell.gateway.open(attempt=2)
        async with cell.gateway.agent(second) as client:
            assert (await client.post("/tools/echo", json={})).json()["isError"] is False
        ((launched, _),) = cell.toolboxes._shared._running.values()
        pid = launched._process.pid  # type: ignore[attr-defined]
        assert is_alive(pid)
    assert not is_alive(pid)


async def test_a_started_http_server_that_ends_is_named() -> None:
    """P26, S17: it exits before it listens; Preflight has its own last words, the agent never sees its log."""
    command = [sys.executable, "-c", "import sys; sys.exit('no port for me')"]
    server = Server.model_validate({"name": "sql", "http": {"command": command, "port": 1}, "allowedTools": ["echo"]})
    async with open_cell(server) as cell:
        (probed,) = (await cell.toolboxes.probe())["servers"]
        assert "exited with code 1" in probed["error"]
        assert "no port for me" in probed["error"]
        assert "no port for me" not in await cell.call_text("echo")


@asynccontextmanager
async def listen_lines() -> AsyncIterator[tuple[int, list[asyncio.subprocess.Process]]]:
    """A port where each connection is a fresh odd server, as in a pod."""
    started: list[asyncio.subprocess.Process] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            str(SERVERS / "odd_server.py"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=10_000_000,
        )
        started.append(process)
        assert process.stdin is not None
        assert process.stdout is not None

        async def feed() -> None:
            assert process.stdin is not None
            while chunk := await reader.read(65536):
                process.stdin.write(chunk)
            process.stdin.close()

        feeding = asyncio.create_task(feed())
        while chunk := await process.stdout.read(65536):
            writer.write(chunk)
        writer.close()
        await process.wait()
        feeding.cancel()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield listener.sockets[0].getsockname()[1], started
    finally:
        listener.close()
        await asyncio.gather(*(process.wait() for process in started))


async def test_lines_over_tcp() -> None:
    """M-A5: one connection is one server, gone with it; a server that dies is replaced by the next connection."""
    async with listen_lines() as (port, started):
        async with open_cell(make_server(), toolboxes={("sql", SCENARIO): ("127.0.0.1", port)}) as cell:
            assert json.loads(await cell.call_text("echo", a=1)) == {"a": 1}
            assert "closed its connection" in await cell.call_text("die")
            assert json.loads(await cell.call_text("echo", a=2)) == {"a": 2}
            assert [outcome[1:] for outcome in cell.outcomes()] == [
                ("ok", ""),
                ("server_error", "exited"),
                ("ok", ""),
            ]
        assert len(started) == 2
