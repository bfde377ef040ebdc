"""GET /tools and POST /tools/{name}: policy, record and blame, over a server that does odd things."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from proctor.adapters.mcp.limits import McpLimits
from proctor.core.digests import canonical_json, digest_bytes
from proctor.core.trajectory.events import EventKind
from support.mcp import LIMITS, forget_peak, make_server, open_cell, read_peak


async def test_a_call_is_recorded_at_the_boundary() -> None:
    """M-A4, M-A8, M-B1, M-B2, M-B8: tool, digest of key-sorted arguments, sizes, true latency; bodies by digest."""
    async with open_cell(make_server()) as cell:
        reply = await cell.call("echo", b=1, a="é")
        assert reply["isError"] is False
        assert json.loads(reply["content"][0]["text"]) == {"b": 1, "a": "é"}
        (event,) = cell.events()
        body = canonical_json({"a": "é", "b": 1})
        assert (event.name, event.status.value, event.retry) == ("echo", "ok", 0)
        assert event.request_digest == digest_bytes(body)
        assert cell.gateway.sink.blobs[event.request_digest] == body
        assert json.loads(cell.gateway.sink.blobs[event.result_digest])["content"] == reply["content"]
        assert event.result_bytes == len(cell.gateway.sink.blobs[event.result_digest])
        assert event.latency_us > 0
        assert event.request_preview == body.decode()


async def test_the_same_call_again_counts_as_a_retry() -> None:
    """M-B1: retry = how often the same (tool, args_digest) was called before; the order of keys doesn't matter."""
    async with open_cell(make_server()) as cell:
        await cell.client.post("/tools/echo", content=b'{"a":1,"b":2}')
        await cell.client.post("/tools/echo", content=b'{"b":2,"a":1}')
        await cell.client.post("/tools/echo", content=b'{"b":3,"a":1}')
        assert [event.retry for event in cell.events()] == [0, 1, 0]


@pytest.mark.parametrize(
    ("tool", "arguments", "status", "error_class"),
    [
        ("fail", {}, "agent_error", "tool_error"),
        ("bad_params", {}, "agent_error", "-32602"),
        ("rpc_error", {}, "server_error", "-32603"),
        ("rpc_error", {"code": -32601}, "agent_error", "-32601"),
        ("fail_in_band", {}, "agent_error", "error_field"),
        ("fail_in_band", {"error": None}, "ok", ""),
        ("nonsense", {}, "agent_error", "unknown_tool"),
        ("garbage", {}, "server_error", "invalid_message"),
        ("half_json", {}, "server_error", "invalid_message"),
        ("bad_utf8", {}, "server_error", "invalid_message"),
        ("wrong_shape", {}, "server_error", "invalid_message"),
        ("huge", {"megabytes": 3}, "server_error", "result_too_large"),
        ("result_of_size", {"bytes": 250_000}, "server_error", "result_too_large"),
        ("die", {}, "server_error", "exited"),
        ("flood", {}, "server_error", "flood"),
        ("endless", {}, "server_error", "flood"),
        ("stray", {}, "ok", ""),
    ],
)
async def test_each_failure_is_someones(tool: str, arguments: dict[str, object], status: str, error_class: str) -> None:
    """Grading rule 8: structured facts decide; a text that says 503 and 429 is the agent's mistake all the same.

    Whatever the server did, the agent gets a clear tool error, and the next call works.
    """
    async with open_cell(make_server(errorField="error")) as cell:
        reply = await cell.call(tool, **arguments)
        assert cell.outcomes() == [(tool, status, error_class)]
        if status == "server_error":
            assert reply["isError"] is True
            assert reply["content"][0]["text"]
        assert json.loads(await cell.call_text("echo", after=1)) == {"after": 1}
        assert cell.outcomes()[-1] == ("echo", "ok", "")


async def test_a_hung_call_ends_and_the_next_gets_a_fresh_process() -> None:
    """P26: no answer in time is the server's fault; the cell goes on with another process."""
    async with open_cell(make_server(), limits=replace(LIMITS, call_seconds=0.5)) as cell:
        first = json.loads(await cell.call_text("environment"))["pid"]
        assert "did not answer" in await cell.call_text("hang")
        second = json.loads(await cell.call_text("environment"))["pid"]
        assert first != second
        assert cell.outcomes()[1] == ("hang", "server_error", "timeout")


async def test_a_policy_holds_on_list_and_call() -> None:
    """S18, M-A4: an unlisted tool is neither seen nor called, whatever the case of its name; both are recorded."""
    async with open_cell(make_server("other-case", allowedTools=["echo", "log"])) as cell:
        assert await cell.names() == ["echo", "log"]
        for name in ("secret_tool", "Secret_Tool", "ECHO", "SECRET_TOOL"):
            response = await cell.client.post(f"/tools/{name}", json={})
            assert response.status_code == 403
            assert response.json()["error"]["type"] == "proctor_tool_refused"
        assert cell.outcomes(EventKind.DENIED) == [
            (name, "denied", "proctor_tool_refused") for name in ("secret_tool", "Secret_Tool", "ECHO", "SECRET_TOOL")
        ]
        assert cell.outcomes() == []


async def test_a_denied_tool_has_no_second_spelling() -> None:
    """S18: `Secret_Tool` is not a way around `deniedTools: [secret_tool]`."""
    async with open_cell(make_server("other-case", deniedTools=["secret_tool"])) as cell:
        assert not {"secret_tool", "Secret_Tool"} & set(await cell.names())
        assert (await cell.client.post("/tools/Secret_Tool", json={})).status_code == 403


async def test_a_changed_list_does_not_widen() -> None:
    """S18: after list_changed the agent is served the list that was pinned, and a new tool can't be called."""
    async with open_cell(make_server()) as cell:
        before = await cell.names()
        await cell.call("change_tools")
        assert await cell.names() == before
        await cell.call("brand_new")
        assert cell.outcomes()[-1] == ("brand_new", "agent_error", "unknown_tool")


async def test_the_list_that_was_served_is_recorded() -> None:
    """M-B1, P26: the listing and its digest are part of the record."""
    async with open_cell(make_server(allowedTools=["echo"]), probe=True) as cell:
        await cell.names()
        (event,) = cell.events(EventKind.TOOLS_LISTED)
        assert event.status.value == "ok"
        assert "echo" in event.result_preview
        (attempt,) = cell.gateway.attempts.open_attempts.values()
        probed = (await cell.toolboxes.probe())["servers"][0]
        assert attempt.tools_digest == probed["digest"] != ""


@pytest.mark.parametrize("body", [b"[1]", b"{", b'{"a": NaN}', b"\xff", b'"text"'])
async def test_arguments_that_are_no_object_are_refused(body: bytes) -> None:
    """Bad input gets a clear error, and never reaches the server."""
    async with open_cell(make_server()) as cell:
        response = await cell.client.post("/tools/echo", content=body)
        assert response.status_code == 400
        assert response.json()["error"]["type"] == "proctor_malformed_request"
        assert cell.outcomes() == []


async def test_the_budget_of_calls_is_kept() -> None:
    """M-A7: past the budget no call is passed on, and the agent is told to answer."""
    async with open_cell(make_server(), agent={"maxToolCalls": 2}) as cell:
        codes = [(await cell.client.post("/tools/echo", json={})).status_code for _ in range(3)]
        assert codes == [200, 200, 429]
        assert len(cell.outcomes()) == 2


async def test_hostile_text_passes_as_text() -> None:
    """S21: NUL, ANSI, lone surrogates and templates are passed on, and never interpreted."""
    async with open_cell(make_server()) as cell:
        text = "\x1b[31m\x00{{7*7}} \ud800 ${x}"
        response = await cell.client.post("/tools/echo", content=json.dumps({"t": text}))
        assert json.loads(json.loads(response.content)["content"][0]["text"])["t"] == text


async def test_an_answer_of_200_mb_is_never_held() -> None:
    """Bad input: 200 MB in one line, at the real limits: a clear tool error, memory bounded, the cell goes on."""
    async with open_cell(make_server(), limits=McpLimits()) as cell:
        await cell.names()
        forget_peak()
        before = read_peak()
        assert "larger than 8388608 bytes" in await cell.call_text("huge", megabytes=200)
        assert read_peak() - before < 80 * 1024 * 1024
        assert cell.outcomes() == [("huge", "server_error", "result_too_large")]
        pid = json.loads(await cell.call_text("environment"))["pid"]
        assert len(await cell.call_text("result_of_size", bytes=8_000_000)) == 8_000_000
        assert json.loads(await cell.call_text("environment"))["pid"] == pid
