"""The two real MCP servers of the quickstart as the agent's user: they work, and are no way around it (S19)."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from proctor.local.engine import Access, Engine
from support.engines import SMALL, ask

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="module")]


@dataclass(frozen=True)
class SqlServer:
    """How one server takes SQL."""

    command: str
    tool: str
    argument: str


SERVERS = [SqlServer("mcp-clickhouse", "run_query", "query"), SqlServer("clickscope", "run_select_query", "sql")]

ATTACKS = (
    "SELECT * FROM secret.t",
    "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString', 'line String')",
    "SELECT * FROM file('/etc/hostname', 'LineAsString', 'line String')",
    "SELECT file('/etc/hostname')",
    "SELECT * FROM remote('127.0.0.1', system.one)",
    "SELECT * FROM system.processes",
    "SELECT * FROM system.query_log",
    "INSERT INTO FUNCTION file('/tmp/x', 'CSV', 'n UInt8') SELECT 1",
    "CREATE TEMPORARY TABLE x (n UInt8)",
    "SYSTEM SHUTDOWN",
    "KILL QUERY WHERE 1",
)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def engine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engine]:
    root = tmp_path_factory.mktemp("servers")
    async with Engine.start(root / "data", access=Access("ds_1"), log=root / "engine.log", limits=SMALL) as engine:
        for sql in (
            "CREATE DATABASE ds_1",
            "CREATE DATABASE secret",
            "CREATE TABLE ds_1.t (n UInt64) ENGINE = MergeTree ORDER BY n",
            "CREATE TABLE secret.t (word String) ENGINE = MergeTree ORDER BY word",
            "INSERT INTO ds_1.t SELECT number + 41000 FROM numbers(10)",
            "INSERT INTO secret.t VALUES ('pool-exhausted')",
        ):
            assert ask(engine.endpoint, sql).ok
        yield engine


def parameters_of(server: SqlServer, engine: Engine) -> StdioServerParameters:
    agent = engine.agent_endpoint
    assert agent
    program = shutil.which(server.command, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert program
    environment = {
        "CLICKHOUSE_HOST": agent.host,
        "CLICKHOUSE_PORT": str(agent.port),
        "CLICKHOUSE_USER": agent.user,
        "CLICKHOUSE_PASSWORD": agent.password,
        "CLICKHOUSE_DATABASE": agent.database,
        "CLICKHOUSE_SECURE": "false",
    }
    return StdioServerParameters(command=program, env=environment)


def text_of(result: Any) -> str:
    return "\n".join(part.text for part in result.content)


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.command)
async def test_a_server_works_and_is_no_way_around(engine: Engine, server: SqlServer, tmp_path: Path) -> None:
    """M-A4, S19: queries of its own database answer; every attack is told no, and the engine lives on."""
    log = tmp_path / "server.log"
    with log.open("w") as errors:
        async with Client(stdio_client(parameters_of(server, engine), errlog=errors)) as client:
            answer = await client.call_tool(server.tool, {server.argument: "SELECT max(n) AS top FROM t"})
            assert "41009" in text_of(answer)
            for attack in ATTACKS:
                refused = await client.call_tool(server.tool, {server.argument: attack})
                text = text_of(refused)
                # clickscope reports failures in its answer, with `isError` false.
                assert refused.is_error or '"error"' in text, attack
                assert "pool-exhausted" not in text
            databases = text_of(await client.call_tool("list_databases", {}))
            assert "ds_1" in databases
            assert "secret" not in databases
            answer = await client.call_tool(server.tool, {server.argument: "SELECT count() AS c FROM t"})
            assert "10" in text_of(answer)
    assert ask(engine.endpoint, "SELECT word FROM secret.t").text == "pool-exhausted\n"
