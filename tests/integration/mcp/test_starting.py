"""How servers start and end: fresh for each attempt, with a bare environment, and gone with all they started."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from proctor.adapters.mcp.launch import DatasetAccess, PlainLauncher, PlainProcess, ServerCommand
from proctor.core.trajectory.events import EventKind
from proctor.core.trajectory.outcome import ExitCause, ProcessExit
from proctor.errors import Retryable
from support.local_runs import wait_until_gone
from support.mcp import DATASET, LIMITS, is_alive, make_server, make_toolboxes, open_cell


@pytest.mark.parametrize(
    ("mode", "fields", "words"),
    [
        ("exit", {}, ["exited with code 3", "cannot start"]),
        ("hang", {}, ["did not answer initialize within 2 s"]),
        ("late:30", {}, ["did not answer initialize within 2 s"]),
        ("no-initialize", {}, ["-32603"]),
        ("no-tools", {}, ["lists no tools"]),
        ("twice", {}, ["'echo' twice"]),
        ("", {"allowedTools": ["echo", "run_query"]}, ["no tool 'run_query'", "it has 'echo'"]),
        ("", {"deniedTools": ["typo"]}, ["no tool 'typo'"]),
        ("", {"allowedTools": ["echo"], "sqlTool": {"name": "echo", "argument": "query"}}, []),
    ],
)
async def test_preflight_names_what_is_wrong(mode: str, fields: dict[str, object], words: list[str]) -> None:
    """P26, S18: a server that exits, hangs, comes late, lists no tools or lacks one: a clear error before any cell."""
    toolboxes = make_toolboxes(make_server(mode, **fields), limits=replace(LIMITS, start_seconds=2))
    (probed,) = (await toolboxes.probe())["servers"]
    assert all(word in probed["error"] for word in words), probed["error"]
    assert bool(words) == bool(probed["error"]) != bool(probed["digest"])


async def test_preflights_error_holds_no_secret() -> None:
    """S17: a server's own log is shown to people with the suite's secrets taken out."""
    toolboxes = make_toolboxes(make_server("exit"), secrets={"a/b": "hunter2"})
    (probed,) = (await toolboxes.probe())["servers"]
    assert "password" in probed["error"]
    assert "hunter2" not in probed["error"]


async def test_the_agent_never_sees_a_servers_log() -> None:
    """S17: a server that ends may have printed credentials; its log is for people alone."""
    async with open_cell(make_server("exit")) as cell:
        assert "exited with code 3" in (text := await cell.call_text("echo"))
        assert "password" not in text
        assert "password" not in (await cell.client.get("/tools")).text


async def test_a_command_that_is_not_there() -> None:
    """A server that can't be started at all is named."""
    server = make_server().model_copy(update={"stdio": make_server().stdio.model_copy(update={"command": ("nope",)})})  # type: ignore[union-attr]
    (probed,) = (await make_toolboxes(server).probe())["servers"]
    assert "cannot run 'nope'" in probed["error"]


async def test_an_attempt_whose_tools_differ_is_an_infrastructure_error(tmp_path: Path) -> None:
    """P26, S18: the list at the start must equal the one pinned in Preflight, else the attempt is void."""
    async with open_cell(make_server(f"count:{tmp_path / 'starts'}"), probe=True) as cell:
        response = await cell.client.get("/tools")
        assert response.status_code == 502
        assert (
            "tools changed since Preflight: new 'hang'" in response.json()["error"]["message"] or "new" in response.text
        )
        assert (await cell.client.post("/tools/echo", json={})).json()["isError"] is True
        (attempt,) = cell.gateway.attempts.open_attempts.values()
        assert attempt.infra_failure.startswith("tools changed since Preflight")
        assert cell.outcomes(EventKind.TOOLS_LISTED) == [("tools/list", "infra_error", "tools_changed")]
        assert cell.outcomes() == [("echo", "infra_error", "tools_changed")]
        await cell.gateway.attempts.end(cell.opened.id, ProcessExit(ExitCause.EXITED, 0))
        assert cell.gateway.sink.attempts[0].outcome == "infra_error"


async def test_an_attempt_that_never_had_tools_is_an_infrastructure_error(tmp_path: Path) -> None:
    """P26: the server passed Preflight and doesn't start for the attempt: it isn't measured without tools."""
    async with open_cell(make_server(f"once:{tmp_path / 'starts'}"), probe=True) as cell:
        reply = await cell.call("echo")
        assert reply["isError"] is True
        assert cell.outcomes() == [("echo", "server_error", "exited")]
        assert cell.attempt.infra_failure == "no tools: the server did not start: the server process exited with code 4"


class NoSandbox(PlainLauncher):
    """A launcher that can't make a sandbox just now."""

    async def launch(self, command: ServerCommand, dataset: DatasetAccess, *, line_bytes: int) -> PlainProcess:
        raise Retryable(f"no sandbox for {command.server} {dataset.database} {line_bytes}")


async def test_a_sandbox_that_cannot_be_made_is_infrastructure() -> None:
    """Grading rule 8: it is neither the agent's doing nor the server's."""
    async with open_cell(make_server(), launcher=NoSandbox()) as cell:
        await cell.call("echo")
        assert cell.outcomes() == [("echo", "infra_error", "not_launched")]
        assert cell.attempt.infra_failure.startswith("no tools: no sandbox")


async def test_a_banner_on_standard_output_is_passed_over() -> None:
    """Servers that print before they speak work with clients in the field, and so here."""
    async with open_cell(make_server("banner")) as cell:
        assert json.loads(await cell.call_text("echo", a=1)) == {"a": 1}


async def test_the_environment_is_bare() -> None:
    """S15, S17, M-A5: value, secret and dataset fields, a PATH, and nothing of ours."""
    env = [
        {"name": "PLAIN", "value": "$HOME {x}"},
        {"name": "SECRET", "secretKeyRef": {"name": "a", "key": "b"}},
        {"name": "DB_HOST", "dataset": "host"},
        {"name": "DB_PORT", "dataset": "port"},
        {"name": "DB_PASSWORD", "dataset": "password"},
    ]
    os.environ["PROCTOR_TEST_LEAK"] = "leaked"
    async with open_cell(make_server(env=env), secrets={"a/b": "s3cret"}) as cell:
        seen = json.loads(await cell.call_text("environment"))["env"]
    path = seen.pop("PATH")
    seen.pop("LC_CTYPE", None)  # set by the interpreter itself
    assert path.endswith("/usr/bin:/bin")
    assert seen == {
        "PLAIN": "$HOME {x}",
        "SECRET": "s3cret",
        "DB_HOST": DATASET.host,
        "DB_PORT": str(DATASET.port),
        "DB_PASSWORD": DATASET.password,
    }


async def test_a_missing_secret_is_named() -> None:
    """A reference to nothing is an error that says which."""
    env = [{"name": "SECRET", "secretKeyRef": {"name": "a", "key": "b"}}]
    (probed,) = (await make_toolboxes(make_server(env=env)).probe())["servers"]
    assert "secret a/b" in probed["error"]


async def test_the_end_takes_everything_that_the_server_started() -> None:
    """M-A5, P35: a child that ignores TERM and holds the pipes is gone too when the attempt ends."""
    async with open_cell(make_server(), limits=replace(LIMITS, stop_seconds=0.5)) as cell:
        pids = json.loads(await cell.call_text("fork"))
        assert all(is_alive(pid) for pid in pids.values())
        await cell.gateway.attempts.end(cell.opened.id, ProcessExit(ExitCause.EXITED, 0))
        # To be killed is not yet to be gone.
        assert wait_until_gone(set(pids.values()), seconds=5.0) == {}


async def test_a_child_that_leaves_the_group_does_not_hold_up_the_end() -> None:
    """M-A5: without a sandbox it can't be found, but the attempt ends all the same; in a sandbox it dies with it."""
    async with open_cell(make_server(), limits=replace(LIMITS, stop_seconds=0.5)) as cell:
        pids = json.loads(await cell.call_text("fork", leave=True))
        async with asyncio.timeout(10):
            await cell.gateway.attempts.end(cell.opened.id, ProcessExit(ExitCause.EXITED, 0))
        assert not is_alive(pids["pid"])
        os.kill(pids["child"], signal.SIGKILL)


async def test_each_attempt_has_a_process_of_its_own() -> None:
    """M-A5: two attempts at once never share a server process."""
    async with open_cell(make_server()) as cell:
        second = await cell.gateway.open(attempt=2)
        async with cell.gateway.agent(second) as client:
            other = (await client.post("/tools/environment", json={})).json()["content"][0]["text"]
        assert json.loads(other)["pid"] != json.loads(await cell.call_text("environment"))["pid"]


async def test_an_attempt_that_never_calls_still_ends_its_server() -> None:
    """The server that was started beside the agent is ended though nobody spoke to it."""
    async with open_cell(make_server("late:60")) as cell:
        await cell.gateway.attempts.end(cell.opened.id, ProcessExit(ExitCause.EXITED, 0))
    # The process is a child of ours: were it alive, the loop would close with its transport open and warn.


async def test_a_call_that_the_end_cuts_off_is_nobodys_failure() -> None:
    """Grading rule 8: an attempt that ends in the middle of a call doesn't make the server look bad."""
    async with open_cell(make_server()) as cell:
        await cell.names()
        call = asyncio.create_task(cell.client.post("/tools/hang", json={}))
        attempt = await cell.until_called()
        await cell.gateway.attempts.end(cell.opened.id, ProcessExit(ExitCause.DEADLINE))
        assert attempt.recorder.tally.tool_calls == 1
        assert cell.outcomes() == [("hang", "ok", "cancelled")]
        await asyncio.gather(call, return_exceptions=True)
