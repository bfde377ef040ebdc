"""The official conformance suite: what passes against a server directly passes through the gateway.

Its scenarios are taken from the suite itself; `docs/mcp.md` shows the outcome, and is compared with it here.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from proctor.api.server import Server
from support.conformance import Findings, knock_with_token, list_scenarios, run_everything, try_client, try_server
from support.mcp import SERVERS, open_cell

DOCS = Path(__file__).parents[3] / "docs/mcp.md"

DECLINED = {
    "tools-call-sampling": "sampling is not offered to servers under test",
    "tools-call-elicitation": "elicitation is not offered to servers under test",
    "elicitation-sep1034-defaults": "elicitation is not offered to servers under test",
    "elicitation-sep1330-enums": "elicitation is not offered to servers under test",
}
"""Server scenarios that ask the agent's side something, and what the server is told instead."""

NOTHING_TO_POLL = "server-sse-polling"
"""A server that hangs up in the middle of a call is resumed by the gateway itself; the agent gets plain JSON, of which
the scenario's own checks are for information only."""

CLIENT_DECLINED = {
    "elicitation-sep1034-client-defaults": "elicitation is not offered to servers under test",
    "auth/": "the server answered with HTTP status 401",
}
"""Client scenarios, by the beginning of their names, and what is said instead. Nobody is there to be asked or to log
in: a server's credential is a header of the suite or of its `provision` hook. `auth/` is tried by its first one."""

Results = Mapping[str, Mapping[str, Findings]]


async def try_through(spec: Mapping[str, object], folder: Path) -> dict[str, Findings]:
    server = Server.model_validate({"name": "sql", "deniedTools": [], **spec})
    async with open_cell(server) as cell, knock_with_token(cell) as url:
        return await try_server(url, folder)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What the suite finds directly, through the gateway over HTTP, and through the gateway over standard streams."""
    folder = tmp_path_factory.mktemp("conformance")
    stdio = {"stdio": {"command": [sys.executable, "-I", str(SERVERS / "everything.py")]}}

    async def try_all() -> Results:
        async with run_everything() as url:
            found = await asyncio.gather(
                try_server(url, folder / "directly"),
                try_through({"http": {"url": url}}, folder / "http"),
                try_through(stdio, folder / "stdio"),
            )
        return dict(zip(("directly", "http", "stdio"), found, strict=True))

    return asyncio.run(try_all())


async def test_every_scenario_of_the_suite_was_tried(results: Results) -> None:
    """MCP faithfully: the list is the suite's own, so a new scenario can't be missed."""
    scenarios = set(await list_scenarios("server"))
    assert len(scenarios) >= 30
    assert [set(found) for found in results.values()] == [scenarios] * 3


def test_the_server_itself_passes_everything(results: Results) -> None:
    """The positive control: every scenario passes directly, and shows something."""
    assert [name for name, found in results["directly"].items() if not found.passed or not found.shown] == []


@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_what_passes_directly_passes_through_the_gateway(results: Results, transport: str) -> None:
    """MCP faithfully: tools, resources, prompts, completion, logging, progress, subscriptions; check by check."""
    through = results[transport]
    assert {name for name, found in through.items() if not found.passed} == set(DECLINED)
    less = {name for name, found in results["directly"].items() if found.shown - through[name].shown}
    assert less == {*DECLINED, NOTHING_TO_POLL}


async def test_a_call_that_the_server_hung_up_on_is_resumed_by_the_gateway() -> None:
    """MCP faithfully: what the polling scenario can't show of a gateway that answers with JSON."""
    async with run_everything() as url:
        server = Server.model_validate({"name": "sql", "http": {"url": url}, "deniedTools": []})
        async with open_cell(server) as cell:
            assert await cell.call_text("test_reconnection") == "Reconnected."


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("test_sampling", "sampling is not offered to servers under test"),
        ("test_elicitation", "elicitation is not offered to servers under test"),
        ("test_elicitation_sep1034_defaults", "elicitation is not offered to servers under test"),
        ("test_elicitation_sep1330_enums", "elicitation is not offered to servers under test"),
    ],
)
@pytest.mark.parametrize("transport", ["http", "stdio"])
async def test_what_is_declined_is_declined_in_words(tool: str, words: str, transport: str) -> None:
    """MCP faithfully: the server gets exactly this error, over both transports; its tool can tell the agent."""
    async with run_everything() as url:
        stdio = {"command": [sys.executable, "-I", str(SERVERS / "everything.py")]}
        spec = {"http": {"url": url}} if transport == "http" else {"stdio": stdio}
        async with open_cell(Server.model_validate({"name": "sql", "deniedTools": [], **spec})) as cell:
            reply = await cell.call(tool)
    assert reply["isError"] is True
    said = reply["content"][0]["text"]
    assert re.fullmatch(rf'.*"error": {{"code": -32601, "message": "{words}"}}.*', said), said


async def test_the_gateways_own_client(tmp_path: Path) -> None:
    """MCP faithfully: initialize, tools_call, sse-retry and whatever else the suite lists, but for what is declined."""
    scenarios = await list_scenarios("client")
    wanted = [name for name in scenarios if not name.startswith(tuple(CLIENT_DECLINED))]
    assert {"initialize", "tools_call", "sse-retry"} <= set(wanted)
    for number, name in enumerate(wanted):
        found = await try_client(name, tmp_path / str(number))
        assert found.passed, (name, found)
        assert found.shown, (name, found)


@pytest.mark.parametrize("prefix", list(CLIENT_DECLINED))
async def test_what_the_gateways_client_declines(prefix: str, tmp_path: Path) -> None:
    """MCP faithfully: known failures fail for the reason that is given, and the error says so."""
    scenario = next(name for name in await list_scenarios("client") if name.startswith(prefix))
    found = await try_client(scenario, tmp_path)
    assert not found.passed
    assert not found.shown
    assert CLIENT_DECLINED[prefix] in " ".join((*found.errors, found.said))


def test_the_table_in_the_docs(results: Results) -> None:
    """MCP faithfully: docs/mcp.md shows what was found, scenario by scenario."""
    rows = re.findall(r"^\| `([^`]+)` \| (\w+) \| (\w+)", DOCS.read_text(), re.MULTILINE)
    word = {True: "passes", False: "declined"}
    expected = [(name, "passes", word[results["http"][name].passed]) for name in results["directly"]]
    assert sorted(rows) == sorted(expected)
