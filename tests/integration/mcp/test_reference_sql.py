"""Control cells of a server without a SQL tool play on the reference SQL server, and Preflight calls the server."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from proctor.adapters.clickhouse.client import open_client
from proctor.adapters.mcp.launch import DatasetAccess
from proctor.core.ids import CellKey, Control
from proctor.core.trajectory.attempt_json import parse_record
from proctor.core.trajectory.events import EventKind
from proctor.core.trajectory.outcome import AttemptRecord
from proctor.local.engine import Access, Engine
from support.gateway import CELL, make_suite
from support.gateway_process import GatewayProcess, start_gateway
from support.mcp import LIMITS, SCENARIO, make_server, make_toolboxes, open_cell

ORACLE = CellKey.for_control(SCENARIO, "sql", Control.ORACLE)
NOOP = CellKey.for_control(SCENARIO, "sql", Control.NOOP)

pytestmark = pytest.mark.engine

TABLE = "CREATE TABLE ds.t ENGINE = MergeTree ORDER BY n AS SELECT number AS n FROM numbers(7)"


@dataclass
class Dataset:
    engine: Engine
    access: DatasetAccess


@pytest.fixture
async def dataset(tmp_path: Path) -> AsyncIterator[Dataset]:
    """A database of one table, with the user that servers under test get."""
    async with Engine.start(tmp_path / "e", log=tmp_path / "log", access=Access("ds")) as engine:
        async with open_client(engine.endpoint) as client:
            await client.execute("CREATE DATABASE ds")
            await client.execute(TABLE)
        agent = engine.agent_endpoint
        assert agent is not None
        yield Dataset(engine, DatasetAccess(agent.host, agent.port, agent.user, agent.password, agent.database))


@pytest.mark.parametrize("cell", [ORACLE, NOOP], ids=str)
async def test_a_control_gets_the_reference_tool_and_an_agent_the_servers(cell: CellKey, dataset: Dataset) -> None:
    """M-A4, P27: one tool over the dataset's own user for the controls; for a cell of an arm nothing changes."""
    async with open_cell(make_server(), cell=cell, probe=True, dataset=dataset.access) as control:
        assert await control.names() == ["run_sql"]
    async with open_cell(make_server(), cell=CELL, probe=True, dataset=dataset.access) as other:
        assert "echo" in await other.names()


async def test_a_control_of_a_server_with_a_sql_tool_plays_through_it(dataset: Dataset) -> None:
    """Manifest, controls: where the server takes SQL, it is the server that is tried."""
    server = make_server(sqlTool={"name": "echo", "argument": "query"})
    async with open_cell(server, cell=ORACLE, dataset=dataset.access) as cell:
        assert "echo" in await cell.names()


async def test_rows_come_as_json_and_are_recorded(dataset: Dataset) -> None:
    """M-B1: through both doors, with the record of any tool call; mistakes are the caller's."""
    async with open_cell(make_server(), cell=ORACLE, dataset=dataset.access) as cell:
        assert await cell.names() == ["run_sql"]
        text = await cell.call_text(
            "run_sql", query="SELECT n, concat('<<n', '=', toString(n), '>>') AS m FROM t LIMIT 2"
        )
        rows = [json.loads(line) for line in text.splitlines()]
        assert rows == [{"n": 0, "m": "<<n=0>>"}, {"n": 1, "m": "<<n=1>>"}]
        assert "UNKNOWN_TABLE" in await cell.call_text("run_sql", query="SELECT 1 FROM nowhere")
        await cell.call("run_sql", query=" ")
        await cell.call("run_sql", sql="SELECT 1")
        await cell.client.post("/tools/run_sql", content=rb"""{"query": "SELECT '\ud800'"}""")
        await cell.call("echo")
        await cell.initialize()
        (answer,) = await cell.request(
            "tools/call", {"name": "run_sql", "arguments": {"query": "SELECT sum(n) * 2 AS x FROM t"}}
        )
        assert json.loads(answer["result"]["content"][0]["text"]) == {"x": 42}
        assert cell.outcomes() == [
            ("run_sql", "ok", ""),
            ("run_sql", "agent_error", "tool_error"),
            ("run_sql", "agent_error", "-32602"),
            ("run_sql", "agent_error", "-32602"),
            ("run_sql", "ok", ""),
            ("echo", "agent_error", "unknown_tool"),
            ("run_sql", "ok", ""),
        ]
        event = cell.events()[0]
        assert json.loads(cell.gateway.sink.blobs[event.result_digest])["content"][0]["text"] == text
        assert cell.attempt.tools_digest
        assert not cell.events(EventKind.DENIED)


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE t2 (x UInt8) ENGINE = Memory",
        "INSERT INTO t VALUES (1)",
        "DROP TABLE t",
        "SELECT * FROM system.users",
        "SELECT * FROM file('/etc/passwd', 'LineAsString')",
        "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')",
        "SELECT 1 SETTINGS max_execution_time = 3600",
        "SELECT number, throwIf(number = 150000) FROM numbers(200000)",
    ],
)
async def test_it_may_do_no_more_than_the_servers_under_test(query: str, dataset: Dataset) -> None:
    """S12: it reads its one database as the restricted user; an error in the middle never looks like a short answer."""
    async with open_cell(make_server(), cell=ORACLE, dataset=dataset.access) as cell:
        assert (await cell.call("run_sql", query=query))["isError"] is True
        assert cell.outcomes() == [("run_sql", "agent_error", "tool_error")]


async def test_its_calls_have_the_limits_of_every_call(dataset: Dataset) -> None:
    """M-B2: too large or too slow is cut with a clear error, budgets hold, and the next call works."""
    limits = replace(LIMITS, call_seconds=1)
    agent = {"maxToolCalls": 3}
    async with open_cell(make_server(), cell=ORACLE, dataset=dataset.access, limits=limits, agent=agent) as cell:
        large = await cell.call_text("run_sql", query="SELECT repeat('x', 1000) AS x FROM numbers(1000)")
        assert "larger than 200000 bytes" in large
        slow = await cell.call_text(
            "run_sql", query="SELECT count() FROM numbers(1000000000000) WHERE sipHash64(number) = 1"
        )
        assert "did not answer tools/call within 1 s" in slow
        assert "7" in await cell.call_text("run_sql", query="SELECT count() FROM t")
        assert (await cell.client.post("/tools/run_sql", json={"query": "SELECT 1"})).status_code == 429


async def test_a_lost_engine_is_nobodys_mistake(dataset: Dataset) -> None:
    """Grading rule 8: without its engine it says so, and it counts as infrastructure's failure."""
    async with open_cell(make_server(), cell=ORACLE, dataset=dataset.access) as cell:
        os.kill(dataset.engine.pid, signal.SIGKILL)
        await dataset.engine.wait()
        assert "engine gives no answer" in await cell.call_text("run_sql", query="SELECT 1")
        assert cell.outcomes() == [("run_sql", "infra_error", "unreachable")]


@pytest.mark.parametrize(
    ("fields", "called"),
    [
        ({"deniedTools": []}, {"tool": "echo", "answer": "result"}),
        (
            {"allowedTools": ["fail", "fail_in_band"]},
            {"tool": "fail_in_band", "answer": "result"},
        ),
        ({"allowedTools": ["bad_params"]}, {"tool": "bad_params", "answer": "error"}),
        ({"allowedTools": ["echo"], "sqlTool": {"name": "echo", "argument": "query"}}, None),
    ],
)
async def test_preflight_calls_a_server_through_which_no_control_plays(
    fields: dict[str, Any], called: dict[str, str] | None
) -> None:
    """M-A4, P27: list and call; what was called and how it was answered is in the listing."""
    (probed,) = (await make_toolboxes(make_server(**fields)).probe())["servers"]
    assert (probed["error"], probed["called"]) == ("", called)
    assert probed["digest"]


@pytest.mark.parametrize(
    ("tool", "answer", "words"),
    [
        ("hang", "none", "its tool 'hang' gives no answer: the server did not answer tools/call within 1 s"),
        ("die", "none", "the server process exited with code 7"),
        ("garbage", "none", "invalid JSON-RPC"),
        ("fail", "error", "'fail', called without arguments, answers with an error: 503 Service Unavailable"),
        ("rpc_error", "error", "error -32603: it broke"),
    ],
)
async def test_preflight_names_a_server_that_lists_and_does_not_answer(tool: str, answer: str, words: str) -> None:
    """P27: no agent is started on a server whose every call would fail; the error has the server's own words."""
    toolboxes = make_toolboxes(make_server(allowedTools=[tool]), limits=replace(LIMITS, call_seconds=1))
    (probed,) = (await toolboxes.probe())["servers"]
    assert words in probed["error"]
    assert probed["called"] == {"tool": tool, "answer": answer}
    assert (probed["digest"], probed["tools"]) == ("", [])


async def test_a_failed_probes_words_hold_no_secret() -> None:
    """S17: what a tool answers may repeat a credential, and be long, and have several lines."""
    toolboxes = make_toolboxes(make_server(allowedTools=["fail"]), secrets={"a/b": "ECONNREFUSED"})
    (probed,) = (await toolboxes.probe())["servers"]
    assert "503" in probed["error"]
    assert "ECONNREFUSED" not in probed["error"]
    assert len(probed["error"]) < 1500


POLICIES = {
    "oracle": {
        "steps": [
            {
                "query": "SELECT concat('<<rows', '=', toString(count()), '>>') AS reading FROM t WHERE "
                "toDateTime64('<<anchor>>', 9, 'UTC') = toDateTime64('2026-11-30 12:00:00', 9, 'UTC')",
                "markers": ["rows"],
            }
        ],
        "answer": "There are <<rows>> rows.",
    },
    "impostors": {},
}


def play(gateway: GatewayProcess, control: httpx.Client, cell: CellKey) -> tuple[str, list[str], AttemptRecord]:
    """Play a scripted cell to its end as an agent does; its answer, the tools it had, and its record."""
    ended = len(control.get("/runs/attempts").json()["attempts"])
    asked = {"cell": str(cell), "attempt": 1, "deadlineSeconds": 60}
    opened = control.post("/runs/attempts", json=asked).json()
    with gateway.client(opened["socket"], opened["token"]) as agent:
        brief = agent.get("/brief").json()
        offered = agent.get("/tools").json()["tools"]
        messages: list[dict[str, Any]] = [{"role": "user", "content": brief["prompt"]}]
        tools = [{"name": tool["name"], "input_schema": tool["inputSchema"]} for tool in offered]
        body = {"model": brief["model"], "max_tokens": 1000, "system": brief["system"], "tools": tools}
        while True:
            reply = agent.post("/v1/messages", json=body | {"messages": messages}).json()
            (block,) = reply["content"]
            if reply["stop_reason"] == "end_turn":
                break
            called = agent.post(f"/tools/{block['name']}", json=block["input"]).json()
            result = {"type": "tool_result", "tool_use_id": block["id"], "content": called["content"]}
            messages += [{"role": "assistant", "content": [block]}, {"role": "user", "content": [result]}]
    control.post(f"/runs/attempts/{opened['id']}/end", json={"cause": "exited", "exitCode": 0})
    found = control.get("/runs/attempts", params={"after": ended, "wait": 10}).json()
    return block["text"], [tool["name"] for tool in offered], parse_record(found["attempts"][0])


def test_controls_of_a_real_gateway(dataset: Dataset) -> None:
    """M-A4, P27: oracle finds what is in the dataset, noop nothing; an arm's cell has its server's tools alone."""
    server = make_server(allowedTools=["echo"])
    models = [{"name": "knows", "scripted": {"policy": "oracle"}}]
    suite = make_suite(models=models).model_copy(update={"servers": (server,)}).to_file()
    access = dataset.access
    login = {name: getattr(access, name) for name in ("host", "port", "user", "password", "database")}
    brief = {"prompt": "How many rows are there?"}
    scenarios = {SCENARIO: {"brief": brief, "policies": POLICIES, "dataset": login}}
    with start_gateway(suite, scenarios=scenarios) as gateway, gateway.control() as control:
        (probed,) = control.post("/runs/probe").json()["servers"]
        assert (probed["error"], probed["called"]) == ("", {"tool": "echo", "answer": "result"})

        answer, tools, record = play(gateway, control, ORACLE)
        assert (answer, tools) == ("There are 7 rows.", ["run_sql"])
        assert (record.outcome, record.tool_calls, record.agent_tool_errors) == ("completed", 1, 0)

        answer, tools, record = play(gateway, control, NOOP)
        assert (answer, tools) == ("I looked at nothing, so I can't say what happened.", ["run_sql"])
        assert (record.outcome, record.tool_calls) == ("gave_up", 0)

        answer, tools, record = play(gateway, control, CellKey(SCENARIO, "sql", "knows", 1))
        assert (answer, tools) == ("No tool here takes SQL, so nothing was looked at.", ["echo"])
        assert (record.outcome, record.tool_calls) == ("gave_up", 0)
