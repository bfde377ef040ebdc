"""The two real servers of the quickstart over a real engine, each in its sandbox, through both doors."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proctor.adapters.clickhouse.client import open_client
from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.mcp.launch import DatasetAccess
from proctor.adapters.mcp.limits import McpLimits
from proctor.adapters.sandbox.availability import sandbox_available
from proctor.api.server import Server
from proctor.bootstrap.server_launcher import SandboxLauncher
from proctor.core.trajectory.events import EventKind
from proctor.local.engine import Access, Engine
from support.mcp import Cell, open_cell

pytestmark = [
    pytest.mark.engine,
    pytest.mark.sandbox,
    pytest.mark.skipif(sandbox_available() is not None, reason="no sandbox here"),
]

FIELDS = ("host", "port", "user", "password", "database")
ENV = [{"name": f"CLICKHOUSE_{field.upper()}", "dataset": field} for field in FIELDS]
SECURE = {"name": "CLICKHOUSE_SECURE", "value": "false"}
SERVERS: dict[str, dict[str, Any]] = {
    "mcp-clickhouse": {
        "allowedTools": ["list_databases", "list_tables", "run_query"],
        "sqlTool": {"name": "run_query", "argument": "query"},
    },
    "clickscope": {
        "deniedTools": ["search_query_log", "list_running_queries"],
        "errorField": "error",
        "sqlTool": {"name": "run_select_query", "argument": "sql"},
    },
}


def make_server(name: str) -> Server:
    return Server.model_validate({"name": "sql", "stdio": {"command": [name]}, "env": [*ENV, SECURE], **SERVERS[name]})


@dataclass
class Dataset:
    engine: Engine
    access: DatasetAccess


@asynccontextmanager
async def run_engine(folder: Path) -> AsyncIterator[Dataset]:
    async with Engine.start(folder / "e", log=folder / "log", access=Access("ds")) as engine:
        await fill(engine.endpoint)
        agent = engine.agent_endpoint
        assert agent is not None
        yield Dataset(engine, DatasetAccess(agent.host, agent.port, agent.user, agent.password, agent.database))


async def fill(endpoint: Endpoint) -> None:
    async with open_client(endpoint) as client:
        await client.execute("CREATE DATABASE ds")
        await client.execute("CREATE TABLE ds.t ENGINE = MergeTree ORDER BY n AS SELECT number AS n FROM numbers(7)")


@pytest.fixture
async def dataset(tmp_path: Path) -> AsyncIterator[Dataset]:
    async with run_engine(tmp_path / "engine") as running:
        yield running


@asynccontextmanager
async def open_sandboxed(name: str, access: DatasetAccess, folder: Path) -> AsyncIterator[Cell]:
    launcher = SandboxLauncher(folder, ())
    address = (access.host, access.port)
    async with AsyncExitStack() as stack:
        await launcher.open_bridges(stack, [address])
        cell = open_cell(
            make_server(name),
            probe=True,
            dataset=access,
            launcher=launcher,
            limits=McpLimits(),
            engine_losses=lambda _: launcher.losses(address),
        )
        yield await stack.enter_async_context(cell)


@pytest.mark.parametrize("name", SERVERS)
async def test_tools_of_a_real_server(name: str, dataset: Dataset, tmp_path: Path) -> None:
    """M-A4, M-A5, M-B1, S18: list, query, mistake and denied tool, with the record of each, from a sealed server."""
    server = make_server(name)
    assert server.sql_tool is not None
    tool, argument = server.sql_tool.name, server.sql_tool.argument
    async with open_sandboxed(name, dataset.access, tmp_path) as cell:
        listed = await cell.names()
        assert tool in listed
        assert not set(listed) & {"search_query_log", "list_running_queries"}
        assert "42" in await cell.call_text(tool, **{argument: "SELECT sum(n) + 21 FROM ds.t"})
        await cell.call(tool, **{argument: "SELECT nothing FROM nowhere"})
        assert [outcome[1] for outcome in cell.outcomes()] == ["ok", "agent_error"]
        await cell.initialize()
        (answer,) = await cell.request(
            "tools/call", {"name": tool, "arguments": {argument: "SELECT count() * 6 FROM ds.t"}}
        )
        assert "42" in json.dumps(answer["result"])
        if name == "clickscope":
            assert (await cell.client.post("/tools/search_query_log", json={})).status_code == 403
            assert len(cell.outcomes(EventKind.DENIED)) == 1


@pytest.mark.parametrize("name", SERVERS)
async def test_a_lost_engine_is_nobodys_mistake(name: str, tmp_path: Path) -> None:
    """Grading rule 8: the engine dies, the server reports some error, the forwarder knows: the attempt is void."""
    server = make_server(name)
    assert server.sql_tool is not None
    call = {server.sql_tool.argument: "SELECT count() FROM ds.t"}
    async with run_engine(tmp_path) as running, open_sandboxed(name, running.access, tmp_path) as cell:
        await cell.call(server.sql_tool.name, **call)
        os.kill(running.engine.pid, signal.SIGKILL)
        await running.engine.wait()
        await cell.call(server.sql_tool.name, **call)
        assert [outcome[1:] for outcome in cell.outcomes()] == [("ok", ""), ("infra_error", "engine_unreachable")]
        assert "engine was lost" in cell.attempt.infra_failure
