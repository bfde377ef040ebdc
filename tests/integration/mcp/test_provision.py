"""`provision`: a hook makes the account and the source that a server asks for, once per server and dataset."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from proctor.adapters.mcp.launch import DatasetAccess
from proctor.api.server import Server
from support.mcp import LIMITS, SERVERS, find_free_port, make_toolboxes, open_cell
from support.mcp_servers.accounts_server import token_of

TEAM = {"name": "X-Team", "value": "blue"}
TOKEN = token_of("admin", "proctor")
COMMAND = [sys.executable, "-I", str(SERVERS / "make_source.py")]


def make_server(http: dict[str, Any], *mode: str, **fields: Any) -> Server:
    spec = {"name": "sql", "http": http, "provision": {"command": [*COMMAND, *mode]}, "headers": [TEAM]}
    return Server.model_validate({**spec, "deniedTools": [], **fields})


def start_here() -> dict[str, Any]:
    port = find_free_port()
    return {"command": [sys.executable, "-I", str(SERVERS / "accounts_server.py"), str(port)], "port": port}


@asynccontextmanager
async def run_elsewhere() -> AsyncIterator[dict[str, Any]]:
    """The server as somebody else's."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", str(SERVERS / "accounts_server.py"), "0", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield {"url": f"http://127.0.0.1:{int(await process.stdout.readline())}/mcp"}
    finally:
        process.kill()
        await process.communicate()


async def test_a_server_at_a_url_is_prepared_once_per_dataset() -> None:
    """M-A4: Preflight and every attempt share one account and source; plain and printed headers go with requests."""
    async with run_elsewhere() as http, open_cell(make_server(http), probe=True) as cell:
        assert json.loads(await cell.call_text("made")) == {"accounts": 1, "sources": 1}
        second = await cell.gateway.open(attempt=2)
        async with cell.gateway.agent(second) as client:
            reply = (await client.post("/tools/made", json={})).json()
        assert json.loads(reply["content"][0]["text"]) == {"accounts": 1, "sources": 1}


async def test_each_dataset_has_a_source_of_its_own() -> None:
    """M-A4: two datasets, two endpoints; the hook is told each dataset's own fields."""
    other = DatasetAccess("127.0.0.1", 2, "agent2", "pass-of-other", "other")
    async with run_elsewhere() as http:
        server = make_server(http)
        first, second = make_toolboxes(server), make_toolboxes(server, dataset=other)
        (one,), (two,) = (await first.probe())["servers"], (await second.probe())["servers"]
        assert (one["error"], two["error"]) == ("", "")
        async with open_cell(server, dataset=other) as cell:
            assert json.loads(await cell.call_text("made")) == {"accounts": 3, "sources": 3}
            shown = json.loads(await cell.call_text("headers"))
    assert shown["source"] == {
        "host": "127.0.0.1", "port": "2", "user": "agent2", "password": "pass-of-other", "database": "other",
    }  # fmt: skip
    assert shown["headers"]["X-Team"] == "blue"


async def test_a_server_that_shows_its_credential_shows_it_to_nobody() -> None:
    """S17: what a hook printed is taken out of results: neither the agent nor the record gets it."""
    async with run_elsewhere() as http, open_cell(make_server(http), probe=True) as cell:
        shown = json.loads(await cell.call_text("headers"))
        assert shown["headers"]["Authorization"] == "•••"
        assert TOKEN.encode() not in b"".join(cell.gateway.sink.blobs.values())
        assert TOKEN not in "".join(event.result_preview for event in cell.events())


async def test_a_server_that_is_started_here_is_prepared_after_its_start_and_after_every_other() -> None:
    """M-A4, P26: what a server forgets with its process it is told again, before the next session."""
    async with open_cell(make_server(start_here()), probe=True) as cell:
        assert json.loads(await cell.call_text("made")) == {"accounts": 1, "sources": 1}
        ((launched, _),) = cell.toolboxes._shared._running.values()
        await launched.terminate()
        assert (await cell.call("made"))["isError"] is True
        assert json.loads(await cell.call_text("made")) == {"accounts": 1, "sources": 1}
        assert [outcome[1:] for outcome in cell.outcomes()] == [("ok", ""), ("server_error", "exited"), ("ok", "")]


async def test_a_printed_header_replaces_the_suites() -> None:
    """One header of a name is sent, whatever its case: the one that was made for this dataset."""
    placeholder = {"name": "authorization", "value": "Bearer placeholder"}
    async with run_elsewhere() as http, open_cell(make_server(http, headers=[TEAM, placeholder])) as cell:
        assert json.loads(await cell.call_text("made"))["sources"] == 1


async def test_a_hook_that_says_no_more_is_waited_for() -> None:
    """Its output ends before it does: what it printed counts once it has ended well."""
    async with run_elsewhere() as http, open_cell(make_server(http, "early-close")) as cell:
        assert json.loads(await cell.call_text("made"))["sources"] == 1


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("fail", "its provision hook failed: it exited with code 1; the last of its log: no account"),
        ("hang", "its provision hook did not end within 2 s"),
        ("garbage", "its provision hook printed as its last line what is not"),
        ("silent", "its provision hook printed as its last line what is not"),
        ("flood", "its provision hook printed more than 1048576 bytes"),
        ("elsewhere", "its provision hook printed a url of another scheme, host or port than its server's"),
        ("unknown", "token: Extra inputs are not permitted"),
        ("protocol", "its provision hook printed header 'Host', which belongs to the protocol"),
        ("late-failure", "its provision hook failed"),
    ],
)
async def test_a_hook_that_goes_wrong_is_named_in_preflight(mode: str, words: str) -> None:
    """Bad input: fails, hangs, prints garbage, 100 MB or another's address: the server is named, no secret is told."""
    limits = replace(LIMITS, hook_seconds=2 if mode == "hang" else 20)
    async with run_elsewhere() as http:
        toolboxes = make_toolboxes(make_server(http, mode), limits=limits)
        (probed,) = (await toolboxes.probe())["servers"]
    assert probed["error"].startswith("server 'sql': ")
    assert words in probed["error"]
    assert TOKEN not in json.dumps(probed)
    assert "\x1b" not in probed["error"]
    assert probed["digest"] == ""


async def test_a_hook_is_ended_with_what_it_started() -> None:
    """M-A5, P35: a child that it leaves behind holds neither its end nor the run up."""
    async with asyncio.timeout(15), run_elsewhere() as http, open_cell(make_server(http, "fork")) as cell:
        assert json.loads(await cell.call_text("made"))["sources"] == 1


async def test_a_server_without_its_hook_answers_nobody() -> None:
    """The positive control: the account and the source are needed."""
    async with run_elsewhere() as http:
        server = Server.model_validate({"name": "sql", "http": http, "headers": [TEAM], "deniedTools": []})
        (probed,) = (await make_toolboxes(server).probe())["servers"]
    assert "HTTP status 401" in probed["error"]
