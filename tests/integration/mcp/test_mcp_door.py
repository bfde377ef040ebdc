"""/mcp: sessions, notifications, progress, cancellation and errors pass; policy and record are those of /tools."""

from __future__ import annotations

import asyncio
import json

import httpx
import httpx2
import pytest
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client

from proctor.core.trajectory.events import EventKind
from proctor.gateway.toolbox import MAX_OTHER_REQUESTS
from support.mcp import make_server, names, open_cell, read_messages


async def test_the_handshake_is_the_servers_own() -> None:
    """P26, M-A4: version, capabilities and instructions are the server's; what is never offered isn't asked for."""
    async with open_cell(make_server()) as cell:
        capabilities = {"sampling": {}, "elicitation": {}, "roots": {}, "experimental": {"x": {}}}
        answer = await cell.initialize("2025-06-18", capabilities=capabilities)
        result = answer["result"]
        assert result["protocolVersion"] == "2025-06-18"
        assert result["serverInfo"]["name"] == "odd"
        assert set(result["capabilities"]) == {"tools", "resources", "prompts", "logging"}
        seen = json.loads(result["instructions"])
        assert seen["capabilities"] == {"experimental": {"x": {}}}
        assert seen["clientInfo"]["name"] == "t"
        assert cell.session


async def test_both_doors_are_one() -> None:
    """M-B1: a call through /mcp leaves the same record as one through /tools, and the same policy holds."""
    async with open_cell(make_server(allowedTools=["echo", "fail"])) as cell:
        await cell.initialize()
        (listed,) = await cell.request("tools/list", {})
        assert names(listed["result"]["tools"]) == await cell.names() == ["echo", "fail"]
        (answer,) = await cell.request("tools/call", {"name": "echo", "arguments": {"a": 1}})
        plain = await cell.call("echo", a=1)
        assert answer["result"]["content"] == plain["content"]
        assert answer["id"] == "a3"
        first, second = cell.events()
        assert (first.request_digest, first.retry, second.retry) == (second.request_digest, 0, 1)
        assert len(cell.events(EventKind.TOOLS_LISTED)) == 2


async def test_a_denied_call_is_a_protocol_error() -> None:
    """S18: denied and recorded, on this door too."""
    async with open_cell(make_server(allowedTools=["echo"])) as cell:
        await cell.initialize()
        (answer,) = await cell.request("tools/call", {"name": "secret_tool", "arguments": {}})
        assert answer["error"]["code"] == -32602
        assert answer["error"]["data"] == {"type": "proctor_tool_refused"}
        assert cell.outcomes(EventKind.DENIED) == [("secret_tool", "denied", "proctor_tool_refused")]


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ([{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "secret_tool"}}], 400),
        ([], 400),
        ({"id": 1, "method": "tools/list"}, 400),
        ({"jsonrpc": "2.0", "id": None, "method": "tools/list"}, 400),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": [1]}, 400),
        ({"jsonrpc": "2.0", "id": 1}, 400),
        ("text", 400),
    ],
)
async def test_batches_and_malformed_messages_are_refused(message: object, status: int) -> None:
    """S18: a batch with a denied call in it is refused as a whole; nothing reaches the server; it is recorded."""
    async with open_cell(make_server(allowedTools=["echo"])) as cell:
        await cell.initialize()
        response = await cell.post(message)
        assert response.status_code == status
        assert response.json()["error"]["code"] in (-32600, -32602)
        assert [outcome for _, outcome, _ in cell.outcomes(EventKind.DENIED)] == ["denied"]
        assert cell.outcomes() == []


async def test_oversized_frames_are_refused() -> None:
    """S18: a message of 5 MB is refused before it is parsed."""
    async with open_cell(make_server()) as cell:
        await cell.initialize()
        response = await cell.request_raw("tools/call", {"name": "echo", "arguments": {"a": "x" * 5_000_000}})
        assert response.status_code == 413


async def test_sessions_are_kept_apart() -> None:
    """S18: no session, another's session, an ended one, a resumed stream: refused and recorded."""
    async with open_cell(make_server()) as cell:
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert (await cell.post(request)).status_code == 400
        assert (await cell.post(request, **{"mcp-session-id": "made-up"})).status_code == 404
        await cell.initialize()
        headers = {"mcp-session-id": cell.session, "last-event-id": "7", "accept": "text/event-stream"}
        assert (await cell.client.get("/mcp", headers=headers)).status_code == 400
        assert (await cell.post(request, **{"mcp-protocol-version": "1999-01-01"})).status_code == 400
        ended = await cell.client.delete("/mcp", headers={"mcp-session-id": cell.session})
        assert ended.status_code == 204
        assert (await cell.post(request)).status_code == 404
        assert len(cell.outcomes(EventKind.DENIED)) == 5


async def test_other_origins_and_types_are_refused() -> None:
    """A browser's page can't reach the tools; what isn't JSON isn't read."""
    async with open_cell(make_server()) as cell:
        assert (await cell.post({}, origin="https://evil.example")).status_code == 403
        assert (await cell.post({}, **{"content-type": "text/plain"})).status_code == 415
        assert (await cell.post({}, accept="text/html")).status_code == 406


async def test_progress_and_log_come_on_the_calls_own_stream() -> None:
    """Notifications pass faithfully: with the agent's own progress token, and none that is another's."""
    async with open_cell(make_server()) as cell:
        await cell.initialize()
        messages = await cell.request(
            "tools/call", {"name": "progress", "arguments": {}, "_meta": {"progressToken": "mine"}}
        )
        assert [message.get("params", {}).get("progress") for message in messages] == [1, 2, None]
        assert {message["params"]["progressToken"] for message in messages[:2]} == {"mine"}
        assert messages[-1]["result"]["content"][0]["text"] == "done"
        log, answer = await cell.request("tools/call", {"name": "log", "arguments": {}})
        assert log == {
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "info", "data": "working"},
        }
        assert answer["result"]


async def test_notifications_are_recorded_up_to_a_bound() -> None:
    """M-B1, M-B3: what the server says is part of the record; a chatty one doesn't fill the store."""
    async with open_cell(make_server()) as cell:
        await cell.initialize()
        messages = await cell.request("tools/call", {"name": "flood", "arguments": {"count": 300}})
        assert len(messages) == 301
        assert len(cell.events(EventKind.MCP_MESSAGE)) == 200


async def test_a_loop_of_requests_that_are_no_calls_ends() -> None:
    """A loop of listings must not fill the store: past a bound it is refused."""
    async with open_cell(make_server()) as cell:
        await cell.initialize()
        cell.attempt.toolbox._others = MAX_OTHER_REQUESTS  # type: ignore[union-attr]
        (answer,) = await cell.request("tools/list", {})
        assert answer["error"]["data"] == {"type": "proctor_call_limit"}
        assert (await cell.client.get("/tools")).status_code == 429


async def test_an_agent_that_goes_away_during_the_handshake_leaves_no_half_open_session() -> None:
    """A call that is cut while the server starts doesn't stop the start: the next call finds it ready."""
    async with open_cell(make_server("late:1")) as cell:
        with pytest.raises(httpx.ReadTimeout):
            await cell.client.post("/tools/echo", json={}, timeout=0.2)
        assert json.loads(await cell.call_text("echo", a=1)) == {"a": 1}


@pytest.mark.parametrize("params", [{"name": "echo", "task": {}}, {"name": 7}, {"name": "echo", "arguments": [1]}, {}])
async def test_malformed_calls_are_the_agents_mistake(params: dict[str, object]) -> None:
    """M-B1: a call without a name, with other arguments than an object, or as a task: recorded, and not passed on."""
    async with open_cell(make_server()) as cell:
        await cell.initialize()
        (answer,) = await cell.request("tools/call", params)
        assert answer["error"]["code"] == -32602
        assert cell.outcomes() == [("", "agent_error", "-32602")]


async def test_errors_pass_with_code_message_and_data() -> None:
    """Errors pass faithfully, of tools and of everything else."""
    async with open_cell(make_server()) as cell:
        await cell.initialize()
        (answer,) = await cell.request("tools/call", {"name": "rpc_error", "arguments": {}})
        assert answer["error"] == {"code": -32603, "message": "it broke", "data": {"at": 1}}
        (answer,) = await cell.request("prompts/get", {"name": "none"})
        assert answer["error"] == {"code": -32601, "message": "no method prompts/get", "data": {"seen": "prompts/get"}}
        (answer,) = await cell.request("resources/read", {"uri": "a://b"})
        assert answer["result"]["contents"][0]["uri"] == "a://b"
        assert [name for name, _, _ in cell.outcomes(EventKind.MCP_MESSAGE)] == ["prompts/get", "resources/read"]


async def test_methods_that_are_not_known_are_declined() -> None:
    """S18: an extension's method can't call a tool past the allow-list."""
    async with open_cell(make_server()) as cell:
        await cell.initialize()
        (answer,) = await cell.request("tools/callMany", {"names": ["secret_tool"]})
        assert answer["error"]["code"] == -32601
        assert cell.outcomes(EventKind.DENIED)[0][1] == "denied"


@pytest.mark.parametrize("method", ["sampling/createMessage", "elicitation/create", "roots/list", "vendor/x"])
async def test_what_the_server_asks_of_the_agent_is_declined(method: str) -> None:
    """Sampling and elicitation are declined with a clear error, and the record says so."""
    async with open_cell(make_server()) as cell:
        declined = json.loads(await cell.call_text("ask_sampling", method=method))
        assert declined["error"]["code"] == -32601
        assert "not offered" in declined["error"]["message"]
        assert cell.outcomes(EventKind.MCP_MESSAGE) == [(method, "denied", "declined")]


async def test_the_server_may_ping() -> None:
    """A ping is answered."""
    async with open_cell(make_server()) as cell:
        answer = json.loads(await cell.call_text("ask_sampling", method="ping"))
        assert answer == {"jsonrpc": "2.0", "id": "s1", "result": {}}


async def test_a_cancelled_call_is_nobodys_failure() -> None:
    """Cancellation passes: the call ends, the server is told, and the record blames no one."""
    async with open_cell(make_server()) as cell:
        await cell.initialize()
        call = asyncio.create_task(cell.request("tools/call", {"name": "hang", "arguments": {}}))
        await cell.until_called()
        await cell.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a2"}})
        (answer,) = await call
        assert answer["error"]["code"] == -32800
        assert cell.outcomes() == [("hang", "ok", "cancelled")]


async def test_notifications_of_no_request_come_on_the_get_stream() -> None:
    """list_changed passes, and what came before the stream was opened is kept for it."""
    async with open_cell(make_server()) as cell:
        await cell.initialize()
        headers = {"mcp-session-id": cell.session, "accept": "text/event-stream"}
        async with cell.client.stream("GET", "/mcp", headers=headers) as stream:
            assert (await cell.client.get("/mcp", headers=headers)).status_code == 409
            await cell.request("tools/call", {"name": "change_after", "arguments": {}})
            async for line in stream.aiter_lines():
                if line.startswith("data: "):
                    assert json.loads(line[6:])["method"] == "notifications/tools/list_changed"
                    break


async def test_a_budget_is_told_where_the_model_reads_it() -> None:
    """M-A7: over the budget a call is answered with a tool error, so that an MCP client doesn't fail."""
    async with open_cell(make_server(), agent={"maxToolCalls": 1}) as cell:
        await cell.initialize()
        await cell.request("tools/call", {"name": "echo"})
        (answer,) = await cell.request("tools/call", {"name": "echo"})
        assert answer["result"]["isError"] is True
        assert "give your answer now" in answer["result"]["content"][0]["text"]


async def test_a_client_of_a_later_revision_is_told_which_are_spoken() -> None:
    """Version negotiation: `server/discover` is answered with the revisions that begin with initialize."""
    async with open_cell(make_server()) as cell:
        response = await cell.request_raw("server/discover", {})
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (400, -32022)
        assert "2025-11-25" in error["data"]["supported"]


async def test_a_second_session_gets_the_first_ones_answer() -> None:
    """One server process per attempt: an agent that connects again meets the same one."""
    async with open_cell(make_server()) as cell:
        first = await cell.initialize()
        pid = json.loads(await cell.call_text("environment"))["pid"]
        second = await cell.initialize()
        assert first["result"] == second["result"]
        assert json.loads(await cell.call_text("environment"))["pid"] == pid


async def test_the_official_client_works_through_the_door() -> None:
    """M-A5: an MCP-native agent needs nothing of ours: list, call with progress, and a denied tool."""
    async with open_cell(make_server(allowedTools=["echo", "progress"])) as cell:
        transport = httpx2.AsyncHTTPTransport(uds=cell.opened.socket)
        headers = {"authorization": f"Bearer {cell.opened.token}"}
        client = httpx2.AsyncClient(transport=transport, headers=headers)
        seen: list[float] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
            seen.append(progress)

        async with (
            client,
            streamable_http_client("http://gateway/mcp", http_client=client) as (read, write),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            listed = await session.list_tools()
            assert [tool.name for tool in listed.tools] == ["echo", "progress"]
            result = await session.call_tool("echo", {"a": 1})
            assert json.loads(result.content[0].text) == {"a": 1}  # type: ignore[union-attr]
            await session.call_tool("progress", {}, progress_callback=on_progress)
            assert seen == [1, 2]
        assert [name for name, _, _ in cell.outcomes()] == ["echo", "progress"]


async def test_hostile_json_passes_as_it_is() -> None:
    """NUL, ANSI and lone surrogates in arguments reach the server and come back."""
    async with open_cell(make_server()) as cell:
        await cell.initialize()
        text = "\x1b[31m\x00 \ud800"
        (answer,) = read_messages(await cell.request_raw("tools/call", {"name": "echo", "arguments": {"t": text}}))
        assert json.loads(answer["result"]["content"][0]["text"])["t"] == text
