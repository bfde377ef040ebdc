"""Programs that hang after their result or without one, in real sandboxes, as stubs of agents' command lines (P25)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.adapters.sandbox.agents import AgentPlace
from proctor.adapters.sandbox.claude_code import claude_code_spec
from proctor.adapters.sandbox.own_agents import OwnAgent, own_agent_spec
from proctor.adapters.sandbox.spec import Isolation, SandboxSpec
from proctor.core.trajectory.outcome import Outcome
from proctor.local.launching import Patience
from support.agents import Work, open_work, say, write_program
from support.sandbox import needs_sandbox

pytestmark = needs_sandbox

SOON = Patience(seconds=3.0, answered_seconds=1.0)

ASK = """\
ask() { curl -sS -o /dev/null -H "x-api-key: $ANTHROPIC_API_KEY" -H "content-type: application/json" "$@"; }
ask "$ANTHROPIC_BASE_URL/tools/echo" -d '{}'
ask "$ANTHROPIC_BASE_URL/v1/messages" \
  -d '{"model": "scripted/newest", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}'
"""
PUT = 'echo "the cart" | ask -T - "$ANTHROPIC_BASE_URL/answer"\n'
HANG = "trap '' TERM\nsleep 1000 &\nsetsid sleep 1000 &\nwait\nsleep 1000\n"


def message(**fields: Any) -> str:
    return f"cat <<'EOF'\n{json.dumps(fields)}\nEOF\n"


def opening(*tools: str, status: str = "connected") -> str:
    servers = [{"name": "tools", "status": status}]
    return message(type="system", subtype="init", mcp_servers=servers, tools=list(tools))


OPENING = opening("mcp__tools__echo")
RESULT = message(type="result", subtype="success", is_error=False, result="the cart database")


def stub_of_claude(folder: Path, script: str, work: Work) -> SandboxSpec:
    program = write_program(folder / "claude", f"#!/bin/sh\ncat > /dev/null\n{script}")
    return claude_code_spec(program, AgentPlace(socket=work.door.socket, token=work.door.token))


def command(folder: Path, script: str, work: Work, isolation: Isolation = Isolation.BWRAP) -> SandboxSpec:
    (folder / "bin").mkdir()
    write_program(folder / "bin" / "agent.sh", script)
    agent = OwnAgent(command=("sh", "./bin/agent.sh"), folder=folder, search_path="/usr/bin:/bin")
    return own_agent_spec(agent, AgentPlace(socket=work.door.socket, token=work.door.token, isolation=isolation))


async def test_p25_a_result_ends_the_cell(tmp_path: Path) -> None:
    """P25: it gave its result and hangs with children that ignore TERM: ended at once, and the result counts."""
    async with open_work(lambda _: say("no matter")) as work:
        noise = "printf 'not json\\n[1]\\n\\033[31m\\000\\n'\n"
        spec = stub_of_claude(tmp_path, ASK + OPENING + noise + RESULT + HANG, work)
        record = await work.run(spec, patience=Patience(seconds=1000, answered_seconds=1000))
        assert (record.outcome, work.answer) == (Outcome.COMPLETED, "the cart database")


ENDINGS = {
    "no result, code 0": (ASK + OPENING, "NoResult: Claude Code ended without a result, with code 0"),
    "no result, code 3": (ASK + OPENING + "exit 3\n", "with code 3"),
    "not one line": ("exit 0\n", "ended without a result"),
    "no tools": (ASK + opening(status="failed") + RESULT, "did not reach the tools"),
    "tools of its own": (ASK + opening("mcp__tools__echo", "Bash") + RESULT, "must not have: ['Bash']"),
    "an error": (
        ASK + OPENING + message(type="result", subtype="success", is_error=True, api_error_status=403, result="no"),
        "Refused: 403 success: no",
    ),
    "hangs": (ASK + OPENING + HANG, "the agent hung, and had sent no answer: nothing was seen of it for 3 s"),
    "its user": ("id -u >&2\nid -g >&2\nexit 3\n", "10001 10001"),
}


@pytest.mark.parametrize(("script", "reason"), ENDINGS.values(), ids=ENDINGS)
async def test_p25_a_missing_result_is_the_agents_error(tmp_path: Path, script: str, reason: str) -> None:
    """P25, P26: no result, no tools, tools of its own, a hang: agent_error, and the reason says which."""
    async with open_work(lambda _: say("no matter")) as work:
        record = await work.run(stub_of_claude(tmp_path, script, work), patience=SOON)
    assert record.outcome is Outcome.AGENT_ERROR
    assert reason in record.reason


COMMANDS = {
    "answered, then hangs": (ASK + PUT + HANG, Outcome.COMPLETED, "the agent answered"),
    "asked, then hangs": (ASK + HANG, Outcome.AGENT_ERROR, "the agent hung"),
    "never asked anything": (HANG, Outcome.INFRA_ERROR, "the gateway saw no request"),
    "crashed after its answer": (
        ASK + PUT + "echo 'cannot go on' >&2; exit 7\n",
        Outcome.AGENT_ERROR,
        "code 7: cannot",
    ),
    "answered": (ASK + PUT, Outcome.COMPLETED, "the agent answered"),
}


@pytest.mark.parametrize(("script", "outcome", "reason"), COMMANDS.values(), ids=COMMANDS)
async def test_p25_commands(tmp_path: Path, script: str, outcome: Outcome, reason: str) -> None:
    """P25, P6: an agent of one's own that hangs: judged by what the gateway saw, never by its exit alone."""
    async with open_work(lambda _: say("no matter")) as work:
        record = await work.run(command(tmp_path, script, work), patience=SOON)
    assert record.outcome is outcome
    assert reason in record.reason


async def test_without_a_sandbox_the_contract_is_the_same(tmp_path: Path) -> None:
    """--sandbox=none, P25: the same variables and doors, and the same end of what hangs."""
    async with open_work(lambda _: say("no matter")) as work:
        hang = "trap '' TERM\nsleep 30\n"
        spec = command(tmp_path, ASK + PUT + hang, work, Isolation.NONE)
        record = await work.run(spec, patience=SOON)
        assert (record.outcome, work.answer) == (Outcome.COMPLETED, "the cart\n")


async def test_its_files_can_be_read_and_nothing_can_be_written_beside_them(tmp_path: Path) -> None:
    """Runtimes, S3: the agent's own folder is there, read-only; scratch is where it starts."""
    (tmp_path / "beside.txt").write_text("not shown")
    script = (
        "cat $0 > copy && test -s $HOME/copy || exit 3\n"
        "touch $(dirname $0)/new 2>/dev/null && exit 4\n"
        "test -e $(dirname $0)/../beside.txt && exit 5\n"
    )
    async with open_work(lambda _: say("no matter")) as work:
        record = await work.run(command(tmp_path, script + ASK + PUT, work), patience=SOON)
    assert record.outcome is Outcome.COMPLETED, record.reason
