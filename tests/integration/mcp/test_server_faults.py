"""Servers that misbehave, each an arm of one run: a clear tool error, the right blame, and nothing lost."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest

from support.local_runs import Machine, adopt_orphans, list_descendants, make_suite
from support.mcp import SERVERS, find_free_port
from support.messages_server import KEY, Message, reply_text, reply_tool, serve_messages

pytestmark = [pytest.mark.engine, pytest.mark.sandbox, pytest.mark.drill]

TURNS = 4
"""Of every agent: echo, the odd tool, echo again, and its answer."""


@dataclass(frozen=True)
class Odd:
    """A server: what its odd tool is called, what the agent is told of that call, and whose doing it is.

    Attributes:
        tool: the tool; each arm has another.
        words: what the agent reads.
        blame: `server` for its fault; empty if the call is right.
        http: it speaks HTTP.
        arguments: of the call.
    """

    tool: str
    words: str
    blame: str = "server"
    http: bool = False
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{'http' if self.http else 'stdio'}-{self.tool.replace('_', '-')}"

    def server(self) -> dict[str, Any]:
        port = find_free_port()
        program = [sys.executable, "-I", str(SERVERS / ("odd_http.py" if self.http else "odd_server.py"))]
        how = (
            {"http": {"command": [*program, str(port)], "port": port}} if self.http else {"stdio": {"command": program}}
        )
        return {"name": self.name, **how, "allowedTools": ["echo", self.tool]}


TOO_LARGE = "the answer is larger than 8388608 bytes and was cut: ask for less"
ODD = [
    Odd("huge", TOO_LARGE),
    Odd("garbage", "the server sent an invalid JSON-RPC message: not valid JSON"),
    Odd("bad_utf8", "the server sent an invalid JSON-RPC message: not valid UTF-8"),
    Odd("hang", "the server did not answer tools/call within 60 s"),
    Odd("die", "the server process exited with code 7"),
    Odd("fork", '"child"', blame="", arguments={"leave": True}),
    Odd("change_tools", "changed", blame=""),
    Odd("leave_child", '"child"', blame="", http=True),
    Odd("huge_stream", TOO_LARGE, http=True),
    Odd("garbage_stream", "the server sent an invalid JSON-RPC message: not valid JSON", http=True),
    Odd("bad_utf8_stream", "the server sent an invalid JSON-RPC message: not valid UTF-8", http=True),
]
CHANGING = "changing"


@dataclass
class Cast:
    """A model that calls what it is offered, and remembers what it was told."""

    told: dict[str, list[str]] = field(default_factory=dict)

    def play(self, body: Message) -> Message:
        offered = [tool["name"] for tool in body["tools"]]
        tool = next((name for name in offered if name != "echo"), "echo")
        turn = len(body["messages"]) // 2
        if turn:
            self.told.setdefault(tool, []).append(json.dumps(body["messages"][-1]["content"]))
        if turn == TURNS - 1:
            return reply_text("It is the database.")
        odd = next((odd for odd in ODD if odd.tool == tool), None)
        arguments = odd.arguments if odd is not None else {}
        called = tool if turn == 1 else "echo"
        return reply_tool(called, arguments if turn == 1 else {"turn": turn}, id_=f"toolu_{turn}")


@dataclass(frozen=True)
class Finished:
    """The run, and what its agents were told."""

    document: dict[str, Any]
    told: dict[str, list[str]]

    def cell(self, server: str) -> dict[str, Any]:
        (cell,) = [
            cell for cell in self.document["cells"] if cell["server"] == server and not cell["model"].startswith("~")
        ]
        return dict(cell)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    adopt_orphans()
    return Machine(tmp_path_factory.mktemp("odd"), {"PROCTOR_SECRET_KEY_K": KEY})


@pytest.fixture(scope="module")
def finished(machine: Machine) -> Finished:
    cast = Cast()
    port = find_free_port()
    changing = [sys.executable, "-I", str(SERVERS / "odd_http.py"), str(port), "", "changing:2"]
    servers = [odd.server() for odd in ODD]
    servers.append({"name": CHANGING, "http": {"command": changing, "port": port}, "deniedTools": []})
    with serve_messages(cast.play, models=frozenset({"steady"})) as provider:
        secret = {"name": "key", "key": "k"}
        model = {"name": "m", "anthropic": {"model": "steady", "baseUrl": provider.url, "secretKeyRef": secret}}
        suite = make_suite(
            "odd-servers",
            servers=servers,
            models=[model],
            replicates=1,
            agent={"deadlineSeconds": 150},
            limits={"infraRetries": 1},
            gate={"enforcement": "Audit", "minimum": "0", "maxInfraErroredPercent": 100},
        )
        ended = machine.call(
            "run", str(machine.write_suite(suite)), "--allow-host", provider.host, "--json", timeout=400
        )
    assert ended.returncode in {0, 2}, (ended.stdout[-2000:], ended.stderr)
    return Finished(json.loads(ended.stdout), cast.told)


@pytest.mark.parametrize("odd", ODD, ids=[odd.name for odd in ODD])
def test_the_agent_is_told_and_the_cell_is_graded(finished: Finished, odd: Odd) -> None:
    """Faults, a server that …; P26: a clear tool error, its own fault, the next call works, the cell is graded."""
    first, fault, after = finished.told[odd.tool]
    assert odd.words in json.loads(json.dumps(fault)).replace('\\"', '"'), fault
    assert ('"is_error": true' in fault) is bool(odd.blame)
    assert '"is_error": true' not in first + after
    cell = finished.cell(odd.name)
    assert (cell["state"], cell["outcome"], cell.get("attempts", 1)) == ("graded", "completed", 1)
    assert cell["toolCalls"] == TURNS - 1
    assert {whose: count for whose, count in cell["toolErrors"].items() if count} == (
        {odd.blame: 1} if odd.blame else {}
    )


def test_a_server_that_changes_its_tools_is_never_measured(finished: Finished) -> None:
    """P26: the list differs from the pinned one: no attempt counts, and the reason says why; other arms go on."""
    cell = finished.cell(CHANGING)
    assert (cell["state"], cell.get("score")) == ("infraErrored", None)
    assert "tools changed since Preflight" in cell["reason"]


def test_nothing_is_lost_or_left(finished: Finished) -> None:
    """P29, P35: every cell is in one count, and no process of a server outlives the run, forked or not."""
    counts = finished.document["run"]["status"]["cells"]
    assert counts["total"] == 3 * (len(ODD) + 1)
    assert (counts["infraErrored"], counts["graded"]) == (1, counts["total"] - 1)
    assert not list_descendants(os.getpid())


def test_servers_without_a_usable_list_end_the_run_before_any_cell(machine: Machine, finished: Finished) -> None:
    """P26, P27: no tools, or one twice: Error, ServerNotReady, with the name of each; nothing is scored."""
    assert finished
    program = [sys.executable, "-I", str(SERVERS / "odd_server.py"), "--start"]
    servers = [
        {"name": name, "stdio": {"command": [*program, name]}, "deniedTools": []} for name in ("no-tools", "twice")
    ]
    ended = machine.call("run", str(machine.write_suite(make_suite("no-list", servers=servers))))
    assert ended.returncode == 3, ended.stderr
    status = machine.last_run()["run"]["status"]
    assert (status["verdict"], status["reason"], status["cells"]["graded"]) == ("Error", "ServerNotReady", 0)
    assert "server 'no-tools': lists no tools" in json.dumps(status)
