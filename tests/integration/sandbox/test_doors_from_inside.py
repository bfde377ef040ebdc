"""The real gateway, attacked from inside an agent's sandbox, with the server under test in a sandbox of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from proctor.adapters.sandbox.agents import agent_spec
from proctor.adapters.sandbox.sandboxed import launch
from proctor.bootstrap.server_launcher import SandboxLauncher
from proctor.core.ids import CellKey
from proctor.core.trajectory.events import Status
from proctor.core.trajectory.outcome import ExitCause, ProcessExit
from support.gateway import CELL
from support.mcp import DATASET, Cell, make_server, open_cell
from support.sandbox import Role, attack, needs_sandbox, short_folder

pytestmark = needs_sandbox

_SECRETS = ["pass-of-dataset", "operator-token", "sk-"]


@pytest.fixture
async def cell(tmp_path: Path) -> AsyncIterator[Cell]:
    async with _open(tmp_path) as opened:
        yield opened


@asynccontextmanager
async def _open(private: Path) -> AsyncIterator[Cell]:
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(short_folder())
        launcher = SandboxLauncher(folder, (private,))
        await launcher.open_bridges(stack, [(DATASET.host, DATASET.port)])
        server = make_server(allowedTools=["echo"])
        yield await stack.enter_async_context(open_cell(server, launcher=launcher))


def _raw(token: str, line: str, body: str = "", *, host: str = "gateway", extra: str = "") -> str:
    length = f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\n" if body else ""
    head = f"{line} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n{length}{extra}"
    return f"{head}\r\n{body}"


async def _knock(cell: Cell, requests: dict[str, str]) -> dict[str, Any]:
    order = {"socket": "/run/gateway.sock", "requests": requests, "words": _SECRETS, "seconds": 3}
    report = await attack(Role.AGENT, {"knock": order}, Path(cell.opened.socket))
    said: dict[str, Any] = report["knock"]
    return said


def _denials(cell: Cell) -> list[str]:
    return [event.error_class for event in cell.gateway.sink.trajectory() if event.status is Status.DENIED]


async def test_s15_no_key_and_no_other_host_from_inside(cell: Cell) -> None:
    """S15, S17: other paths, hosts and framings are refused, and no reply holds a secret; the plain request works."""
    token = cell.opened.token
    body = json.dumps({"model": "claude-other", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]})
    chunked = "Transfer-Encoding: chunked\r\n"
    said = await _knock(
        cell,
        {
            "control": _raw(token, "GET /brief"),
            "files": _raw(token, "GET /v1/files"),
            "absolute": _raw(token, "GET http://api.anthropic.com/v1/messages"),
            "host": _raw(token, "GET /brief", host="api.anthropic.com"),
            "model": _raw(token, "POST /v1/messages", body),
            "smuggled": _raw(token, "PUT /answer", "0\r\n\r\nGET /runs/health HTTP/1.1\r\n\r\n", extra=chunked),
            "operator": _raw(token, "GET /runs/progress"),
        },
    )
    assert said.pop("control")["statuses"] == [200]
    assert [find for reply in said.values() for find in reply["finds"]] == []
    for name, reply in said.items():
        assert set(reply["statuses"]) <= {400, 403, 404}, (name, reply)
        assert len(reply["statuses"]) <= 1, (name, reply)
    assert said["model"]["word"] == "model_refused"
    assert len(_denials(cell)) >= 4


async def test_s16_a_token_is_good_for_its_own_cell_and_time_alone(cell: Cell) -> None:
    """S16: another cell's token, no token, a made-up one, and the right one after the end: refused with own words."""
    other = await cell.gateway.open(CellKey(CELL.scenario, CELL.server, CELL.model, CELL.replicate + 1))
    requests = {
        "other": _raw(other.token, "GET /brief"),
        "none": _raw("", "GET /brief"),
        "made up": _raw(cell.opened.token[:-2] + "zz", "GET /brief"),
        "control": _raw(cell.opened.token, "GET /brief"),
    }
    said = await _knock(cell, requests)
    assert said.pop("control")["statuses"] == [200]
    for name, reply in said.items():
        assert set(reply["statuses"]) <= {401, 403}, (name, reply)
        assert reply["word"], (name, reply)
    spec = agent_spec(Path(cell.opened.socket), cell.opened.token)
    await cell.gateway.attempts.end(cell.opened.id, ProcessExit(ExitCause.EXITED, 0))
    ended = await (await launch(spec, deadline=30)).wait()
    # Its socket is gone with it: there is no door left to knock at.
    assert ended.cause in {ExitCause.START_FAILED, ExitCause.EXITED}
    assert ended.exit_code != 0


async def test_s18_only_listed_tools_whatever_the_door(cell: Cell) -> None:
    """S18: unlisted names, other case, dots and batches are denied and recorded; the listed tool answers."""
    token = cell.opened.token
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "die", "arguments": {}}}
    accept = "Accept: application/json, text/event-stream\r\n"
    said = await _knock(
        cell,
        {
            "control": _raw(token, "POST /tools/echo", '{"a":1}'),
            "unlisted": _raw(token, "POST /tools/die", "{}"),
            "case": _raw(token, "POST /tools/ECHO", "{}"),
            "path": _raw(token, "POST /tools/echo/../die", "{}"),
            "encoded": _raw(token, "POST /tools/%64ie", "{}"),
            "batch": _raw(token, "POST /mcp", json.dumps([call, call]), extra=accept),
            "session": _raw(token, "POST /mcp", json.dumps(call), extra=accept + "Mcp-Session-Id: someone-elses\r\n"),
        },
    )
    assert said.pop("control")["statuses"] == [200]
    for name, reply in said.items():
        assert '"isError":true' in reply["text"] or reply["statuses"][0] >= 400, (name, reply)
    # The server is in a sandbox of its own and still there: none of the calls of `die` reached it.
    assert (await cell.call("echo", b=2))["isError"] is False
    assert len(_denials(cell)) >= 3


async def test_s20_nothing_an_agent_is_told_names_the_scenario(cell: Cell) -> None:
    """P28, S20: brief, tools and identifiers hold neither the scenario's name nor the server's."""
    token = cell.opened.token
    order = {
        "socket": "/run/gateway.sock",
        "requests": {name: _raw(token, f"GET /{name}") for name in ("brief", "tools")},
        "words": [CELL.scenario, "oracle", "noop"],
    }
    report = await attack(Role.AGENT, {"knock": order}, Path(cell.opened.socket))
    assert [find for reply in report["knock"].values() for find in reply["finds"]] == []
    assert CELL.scenario not in cell.opened.socket
    assert CELL.scenario not in cell.opened.id


async def test_the_builtin_agent_through_the_real_gateway(cell: Cell) -> None:
    """M-A5, M-A8: the real agent, in its sandbox, through the real gateway: its answer arrives and is recorded."""
    ended = await (await launch(agent_spec(Path(cell.opened.socket), cell.opened.token), deadline=60)).wait()
    assert (ended.cause, ended.exit_code) == (ExitCause.EXITED, 0), ended.message
    kinds = [event.kind.value for event in cell.gateway.sink.trajectory()]
    assert "answer" in kinds
