"""Servers over HTTP that need headers, an account and a source, in sandboxes and in whole runs."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest

from proctor.api.server import Server
from proctor.bootstrap.server_launcher import SandboxLauncher
from support.local_runs import Machine, make_suite
from support.mcp import DATASET, SERVERS, find_free_port, make_toolboxes, open_cell
from support.mcp_servers.accounts_server import token_of
from support.mcp_servers.make_source import can_connect
from support.sandbox import short_folder

pytestmark = [pytest.mark.engine, pytest.mark.sandbox]

ADMIN = "admin-token-5f1c3e"
TOKEN = token_of(ADMIN, "proctor")
HOOK = [sys.executable, "-I", str(SERVERS / "make_source.py")]
SERVER = [sys.executable, "-I", str(SERVERS / "accounts_server.py")]
ADMIN_ENV = {"name": "ADMIN_TOKEN", "secretKeyRef": {"name": "accounts", "key": "admin"}}
NEWEST = {"name": "newest", "scripted": {"policy": "newest"}}
SQL = {"allowedTools": ["query"], "sqlTool": {"name": "query", "argument": "sql"}}


@contextmanager
def run_elsewhere() -> Iterator[int]:
    """The server as somebody else's; its port."""
    environment = {"ADMIN_TOKEN": ADMIN, "TEAM": "red"}
    with Popen([*SERVER, "0"], stdout=PIPE, env=environment) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def files_with(folder: Path, words: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and words.encode() in path.read_bytes()]


def test_a_run_over_http_with_headers_and_provision(tmp_path: Path) -> None:
    """M-A4, M-A6, S17: two such servers, one started here and one at a url, from one file to one verdict.

    Each needs an account, a source and a header; the controls play through both. No secret is left anywhere.
    """
    secrets = tmp_path / "secrets"
    (secrets / "accounts").mkdir(parents=True)
    (secrets / "accounts/admin").write_text(ADMIN)
    (secrets / "accounts/team").write_text("blue")
    machine = Machine(tmp_path)
    port = find_free_port()
    with run_elsewhere() as far:
        here = {
            "name": "here",
            "http": {"command": [*SERVER, str(port)], "port": port},
            "headers": [{"name": "X-Team", "secretKeyRef": {"name": "accounts", "key": "team"}}],
            "env": [ADMIN_ENV],
            "provision": {"command": HOOK},
        }
        there = {
            "name": "there",
            "http": {"url": f"http://127.0.0.1:{far}/mcp"},
            "headers": [{"name": "X-Team", "value": "red"}],
            "env": [ADMIN_ENV],
            "provision": {"command": HOOK},
        }
        suite = make_suite(servers=[{**here, **SQL}, {**there, **SQL}], models=[NEWEST])
        finished = machine.call("run", str(machine.write_suite(suite)), "--secrets", str(secrets))
    assert finished.returncode == 0, (finished.stdout, finished.stderr)
    document = machine.last_run()
    status = document["run"]["status"]
    assert status["verdict"] == "Pass"
    assert status["cells"]["graded"] == status["cells"]["total"] == 8
    assert float(status["controls"]["oracle"]) >= 0.95
    for secret in (TOKEN, ADMIN):
        assert secret not in finished.stdout + finished.stderr
        assert files_with(machine.data_dir, secret) == []


@pytest.mark.drill
def test_a_run_whose_hook_fails_ends_before_any_cell(tmp_path: Path) -> None:
    """M-A4, S17: Error, ServerNotReady, with the hook's own words and no secret; nothing is scored."""
    with run_elsewhere() as far:
        server = {
            "name": "there",
            "http": {"url": f"http://127.0.0.1:{far}/mcp"},
            "headers": [{"name": "X-Team", "value": "red"}],
            "env": [{"name": "ADMIN_TOKEN", "value": ADMIN}],
            "provision": {"command": [*HOOK, "late-failure"]},
        }
        machine = Machine(tmp_path)
        finished = machine.call("run", str(machine.write_suite(make_suite(servers=[{**server, **SQL}]))))
    assert finished.returncode == 3, (finished.stdout, finished.stderr)
    status = machine.last_run()["run"]["status"]
    assert (status["verdict"], status["reason"]) == ("Error", "ServerNotReady")
    told = json.dumps(status, ensure_ascii=False) + finished.stdout + finished.stderr
    assert "server 'there': its provision hook failed: it exited with code 1" in told
    assert "cannot close •••" in told
    assert status["cells"]["graded"] == 0
    assert TOKEN not in told
    assert files_with(machine.data_dir, TOKEN) == []


@asynccontextmanager
async def open_launcher() -> AsyncIterator[SandboxLauncher]:
    with short_folder() as folder:
        async with AsyncExitStack() as stack:
            launcher = SandboxLauncher(folder, ())
            await launcher.open_bridges(stack, [(DATASET.host, DATASET.port)])
            yield launcher


def read_look(error: str) -> dict[str, Any]:
    """What a hook saw, from its last words."""
    found: dict[str, Any] = json.loads(error.partition("the last of its log: ")[2].splitlines()[0])
    return found


@pytest.mark.parametrize("elsewhere", [True, False], ids=["at a url", "started here"])
async def test_a_hook_is_as_confined_as_a_server(elsewhere: bool) -> None:
    """S15, S17: it reaches its server and the dataset, nothing else; its environment is what the suite says."""
    with socket.create_server(("127.0.0.1", 0)) as forbidden, run_elsewhere() as far:
        other = forbidden.getsockname()[1]
        port = far if elsewhere else find_free_port()
        targets = {"server": ["127.0.0.1", port], "dataset": ["127.0.0.1", 8123], "other": ["127.0.0.1", other]}
        http = {"url": f"http://127.0.0.1:{far}/mcp"} if elsewhere else {"command": [*SERVER, str(port)], "port": port}
        provision = {"command": [*HOOK, "look", json.dumps(targets)]}
        server = Server.model_validate({"name": "sql", "http": http, "provision": provision, "deniedTools": []})
        async with open_launcher() as launcher:
            toolboxes = make_toolboxes(server, launcher=launcher)
            (probed,) = (await toolboxes.probe())["servers"]
            assert await asyncio.to_thread(can_connect, "127.0.0.1", other)
            await toolboxes.close()
    found = read_look(probed["error"])
    assert found["seen"] == {"server": True, "dataset": True, "other": False}
    fields = [f"PROCTOR_DATASET_{name}" for name in ("DATABASE", "HOST", "PASSWORD", "PORT", "USER")]
    assert set(found["variables"]) - {"LC_CTYPE", "PWD"} == {
        *fields, "PROCTOR_SERVER_URL", "HOME", "LANG", "PATH", "TMPDIR",
    }  # fmt: skip


async def test_a_hook_finds_a_port_that_is_not_free_to_all_higher_up() -> None:
    """Nobody in a sandbox may listen below 1024: the hook is told another port, under the server's own name."""
    provision = {"command": [*HOOK, "look", json.dumps({"server": ["localhost", 10080]})]}
    spec = {"name": "sql", "http": {"url": "http://localhost/mcp"}, "provision": provision, "deniedTools": []}
    async with open_launcher() as launcher:
        (probed,) = (await make_toolboxes(Server.model_validate(spec), launcher=launcher).probe())["servers"]
    found = read_look(probed["error"])
    assert (found["told"], found["seen"]) == ("http://localhost:10080", {"server": True})


async def test_a_hook_reaches_its_server_by_name() -> None:
    """A certificate is made out to a name: inside, the url's own name leads to the server."""
    with run_elsewhere() as far:
        http = {"url": f"http://localhost:{far}/mcp"}
        spec = {"name": "sql", "http": http, "provision": {"command": HOOK}, "deniedTools": []}
        env = [{"name": "ADMIN_TOKEN", "value": ADMIN}]
        header = {"name": "X-Team", "value": "red"}
        server = Server.model_validate({**spec, "env": env, "headers": [header]})
        async with open_launcher() as launcher, open_cell(server, launcher=launcher) as cell:
            assert json.loads(await cell.call_text("made")) == {"accounts": 1, "sources": 1}
            assert json.loads(await cell.call_text("headers"))["source"]["port"] == str(DATASET.port)
