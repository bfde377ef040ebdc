"""The real engine, attacked from inside a server's sandbox, through the one way that it has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.adapters.sandbox.bridge import forward_unix_to_tcp
from proctor.local.engine import Access, Engine
from support.engines import SMALL, ask
from support.sandbox import Role, build_spec, needs_sandbox, run, short_folder

pytestmark = [*needs_sandbox, pytest.mark.engine]

_CLIENT = """
import http.client, json, os, urllib.parse
said = {}
for name, sql in json.loads(os.environ["QUERIES"]).items():
    one = http.client.HTTPConnection("127.0.0.1", 8123, timeout=60)
    headers = {"X-ClickHouse-User": os.environ["CH_USER"], "X-ClickHouse-Key": os.environ["CH_PASSWORD"]}
    one.request("POST", "/?" + urllib.parse.urlencode({"database": "ds"}), sql, headers)
    reply = one.getresponse()
    said[name] = [reply.status, reply.read().decode("utf-8", "replace")[:300]]
print(json.dumps(said))
"""

_ATTACKS = {
    "another database": "SELECT * FROM other.t",
    "write": "INSERT INTO ds.t VALUES (2)",
    "create": "CREATE TABLE ds.x (a UInt8) ENGINE = Memory",
    "drop": "DROP TABLE ds.t",
    "url": "SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a String')",
    "remote": "SELECT * FROM remote('127.0.0.1:9000', 'other', 't')",
    "file": "SELECT * FROM file('/etc/passwd', 'LineAsString', 'a String')",
    "insert into function": "INSERT INTO FUNCTION file('/tmp/x', 'CSV', 'a String') VALUES ('1')",
    "executable": "SELECT * FROM executable('x.sh', 'CSV', 'a String')",
    "the engine's own process": "SELECT * FROM python('x')",
    "code in text": "SELECT * FROM eval('SELECT 1')",
    "another's index": "SELECT * FROM mergeTreeIndex('other', 't')",
    "query log": "SELECT * FROM system.query_log",
    "running queries": "SELECT * FROM system.processes WHERE query NOT LIKE '%processes%'",
    "system": "SYSTEM SHUTDOWN",
    "kill": "KILL QUERY WHERE 1",
    "users": "SELECT * FROM system.users",
    "limits": "SELECT count() FROM numbers(10) SETTINGS max_memory_usage = 100000000000",
}


async def test_s19_a_server_can_only_read_its_own_dataset(tmp_path: Path) -> None:
    """S19: from inside, every way around the one database is denied; reading it works."""
    access = Access(agent_database="ds")
    async with Engine.start(tmp_path / "engine", access=access, log=tmp_path / "log", limits=SMALL) as engine:
        for sql in (
            "CREATE DATABASE ds",
            "CREATE DATABASE other",
            "CREATE TABLE ds.t (a UInt8) ENGINE = MergeTree ORDER BY a",
            "CREATE TABLE other.t (a UInt8) ENGINE = MergeTree ORDER BY a",
            "INSERT INTO ds.t VALUES (42)",
            "INSERT INTO other.t VALUES (43)",
        ):
            assert ask(engine.endpoint, sql).ok, sql
        said = await _ask_from_inside(engine, {"control": "SELECT a FROM ds.t", **_ATTACKS})
        shown = await _ask_from_inside(engine, {"databases": "SELECT name FROM system.databases"})
        assert ask(engine.endpoint, "SELECT count() FROM ds.t").text.strip() == "1"
    assert said.pop("control") == [200, "42\n"]
    assert {name: reply for name, reply in said.items() if reply[0] == 200} == {}
    assert "other" not in shown["databases"][1]


async def _ask_from_inside(engine: Engine, queries: dict[str, str]) -> dict[str, Any]:
    agent = engine.agent_endpoint
    assert agent is not None
    with short_folder() as folder:
        async with forward_unix_to_tcp(folder / "d.sock", agent.host, agent.port) as bridge:
            variables = {"QUERIES": json.dumps(queries), "CH_USER": agent.user, "CH_PASSWORD": agent.password}
            spec = build_spec(Role.SERVER, _CLIENT, bridge.socket, variables=variables)
            code, output, errors = await run(spec)
    assert code == 0, errors.decode()
    said: dict[str, Any] = json.loads(output)
    return said
