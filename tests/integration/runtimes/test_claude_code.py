"""Claude Code itself, from npm, in its sandbox, through the real gateway."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from proctor.adapters.sandbox.agents import AgentPlace
from proctor.adapters.sandbox.claude_code import (
    CLAUDE_CODE_VARIABLE,
    CLAUDE_CODE_VERSION,
    claude_code_spec,
    find_claude_code,
)
from proctor.adapters.sandbox.spec import Isolation, SandboxSpec
from proctor.core.trajectory.outcome import Limit, Outcome
from support.agents import Work, look_for_ever, open_work, say
from support.sandbox import needs_sandbox

pytestmark = needs_sandbox


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pinned binary, which `make .venv/.npm` installs."""
    found = find_claude_code(tmp_path_factory.mktemp("none"), {"PATH": "/usr/bin"})
    assert found.program is not None, found.problem
    return found.program


def build_spec(program: Path, work: Work, isolation: Isolation = Isolation.BWRAP) -> SandboxSpec:
    return claude_code_spec(program, AgentPlace(socket=work.door.socket, token=work.door.token, isolation=isolation))


@pytest.mark.parametrize("isolation", list(Isolation))
async def test_an_investigation(program: Path, isolation: Isolation) -> None:
    """Runtimes: brief in, answer out, one server's tools, one model, nothing refused; the same without a sandbox."""
    async with open_work() as work:
        record = await work.run(build_spec(program, work, isolation))
        assert (record.outcome, record.reason) == (Outcome.COMPLETED, "the agent answered")
        assert (record.turns, record.tool_calls) == (2, 1)
        assert work.denied == []
        assert work.answer.startswith("It said")
    for body in work.asked:
        assert [tool["name"] for tool in body["tools"]] == ["mcp__tools__echo"]
        assert body["stream"] is True
        assert body["system"][-1]["text"] == "You are an SRE."
    first = str(work.asked[0]["messages"])
    assert "What broke?" in first
    assert "Today's date" not in first


async def test_turns_end_at_the_gateways_limit(program: Path) -> None:
    """Manifest, maxTurns: the limit is on record, and what was said so far is the answer."""
    async with open_work(look_for_ever, maxTurns=2) as work:
        record = await work.run(build_spec(program, work))
    assert (record.outcome, record.limit, record.turns) == (Outcome.TURN_LIMIT, Limit.TURNS, 2)
    assert work.answer == "Not yet."


async def test_an_answer_without_a_look_gave_up(program: Path) -> None:
    """P27: the model said something and called nothing."""
    async with open_work(lambda _: say("It was the cart.")) as work:
        record = await work.run(build_spec(program, work))
    assert record.outcome is Outcome.GAVE_UP


def test_another_version_or_none_is_refused_with_the_way_to_get_it(tmp_path: Path) -> None:
    """Runtimes: pinned; whatever else is found is named, and so is the fix."""
    none = find_claude_code(tmp_path, {CLAUDE_CODE_VARIABLE: str(tmp_path / "nowhere")})
    other = find_claude_code(tmp_path, {CLAUDE_CODE_VARIABLE: sys.executable})
    for found in (none, other):
        assert found.program is None
        assert f"npm install --prefix {tmp_path}/npm @anthropic-ai/claude-code@{CLAUDE_CODE_VERSION}" in found.problem
        assert "not its native binary" in found.problem


def test_the_data_dir_is_looked_at(tmp_path: Path, program: Path) -> None:
    """Runtimes: where the message says that npm puts it, it is found."""
    folder = tmp_path / "npm" / "node_modules" / "@anthropic-ai" / "claude-code" / "bin"
    folder.mkdir(parents=True)
    (folder / "claude.exe").symlink_to(program)
    assert find_claude_code(tmp_path, {"PATH": "/nowhere"}).program == program
