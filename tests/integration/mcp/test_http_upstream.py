"""Servers over streamable HTTP and over TCP: sessions, headers, streams and faults."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from proctor.adapters.mcp.limits import McpLimits
from proctor.api.server import Server
from proctor.core.trajectory.events import EventKind
from support.mcp import (
    LIMITS,
    SCENARIO,
    SERVERS,
    find_free_port,
    forget_peak,
    is_alive,
    make_server,
    make_toolboxes,
    open_cell,
    read_peak,
    run_odd_http,
)


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


async def test_a_secret_header_that_a_server_shows_is_taken_out() -> None:
    """S17: a server that repeats its credential spoils neither the record nor the agent."""
    headers = [{"name": "X-Extra", "secretKeyRef": {"name": "t", "key": "k"}}]
    async with run_odd_http() as port:
        server = make_http_server(port, headers=headers)
        async with open_cell(server, secrets={"t/k": "Bearer 0123456789abcdef"}) as cell:
            assert json.loads(await cell.call_text("echo"))["x"] == "•••"


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
        ("bad_utf8", {}, "server_error", "invalid_message"),
        ("wrong_shape", {}, "server_error", "invalid_message"),
        ("garbage_stream", {}, "server_error", "invalid_message"),
        ("bad_utf8_stream", {}, "server_error", "invalid_message"),
        ("huge", {}, "server_error", "result_too_large"),
        ("huge_stream", {}, "server_error", "result_too_large"),
        ("flood", {}, "server_error", "flood"),
        ("drip", {}, "server_error", "timeout"),
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


@pytest.mark.parametrize(("mode", "words"), [("no-tools", "lists no tools"), ("twice", "'echo' twice")])
async def test_preflight_refuses_an_odd_list(mode: str, words: str) -> None:
    """P26: no tools, or two of one name: the server is named before any cell."""
    async with run_odd_http("", mode) as port:
        (probed,) = (await make_toolboxes(make_http_server(port)).probe())["servers"]
    assert words in probed["error"]


async def test_a_list_that_changes_in_the_middle_of_a_run_voids_the_attempt() -> None:
    """P26: the list at an attempt's start equals the pinned one, or the attempt doesn't count; no tool is called."""
    async with run_odd_http("", "changing:2") as port, open_cell(make_http_server(port), probe=True) as cell:
        assert (await cell.call("echo"))["isError"] is True
        assert cell.outcomes() == [("echo", "infra_error", "tools_changed")]
        assert "tools changed since Preflight" in cell.attempt.infra_failure


async def test_a_list_that_changes_with_a_lost_session_voids_the_attempt() -> None:
    """P26: what the agent was served holds to the end; a fresh session that offers more is not used."""
    async with run_odd_http("", "changing:3") as port, open_cell(make_http_server(port), probe=True) as cell:
        assert "args" in await cell.call_text("echo")
        await cell.call("lose_session")
        assert "tools changed since Preflight" in await cell.call_text("echo")
        assert [outcome[1:] for outcome in cell.outcomes()] == [
            ("ok", ""),
            ("server_error", "session_lost"),
            ("infra_error", "tools_changed"),
        ]
        assert "tools changed since Preflight" in cell.attempt.infra_failure


async def test_a_started_server_that_dies_in_a_call_is_started_again() -> None:
    """Faults: it exits in the middle of a call: a tool error, the server's fault, and the next call finds it again."""
    port = find_free_port()
    command = [sys.executable, "-I", str(SERVERS / "odd_http.py"), str(port)]
    spec = {"name": "sql", "http": {"command": command, "port": port}, "allowedTools": ["echo", "die"]}
    async with open_cell(Server.model_validate(spec), probe=True) as cell:
        assert "cut the connection" in await cell.call_text("die")
        assert "args" in await cell.call_text("echo")
        assert cell.outcomes() == [("die", "server_error", "exited"), ("echo", "ok", "")]


@pytest.mark.parametrize("tool", ["huge", "huge_stream"])
async def test_an_answer_of_200_mb_is_never_held(tool: str) -> None:
    """Faults: 200 MB over HTTP, at the real limits: a clear tool error, memory bounded, the cell goes on."""
    async with run_odd_http() as port, open_cell(make_http_server(port), limits=McpLimits()) as cell:
        await cell.names()
        forget_peak()
        before = read_peak()
        assert "larger than 8388608 bytes" in await cell.call_text(tool)
        assert read_peak() - before < 80 * 1024 * 1024
        assert "args" in await cell.call_text("echo")


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
    port = find_free_port()
    async with open_cell(make_http_server(port)) as cell:
        reply = await cell.call("echo")
        assert reply["isError"] is True
        assert cell.outcomes() == [("echo", "infra_error", "unreachable")]


async def test_a_started_http_server_is_shared_and_ended() -> None:
    """M-A5: one process per server and dataset, with the bare environment, gone when the gateway ends."""
    port = find_free_port()
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
