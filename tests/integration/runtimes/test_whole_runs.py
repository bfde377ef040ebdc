"""Every runtime runs the quickstart's scenario end to end against a local server that speaks the Messages API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.api.loading import load_suite
from proctor.settings import shipped_scenarios_dir
from support.local_runs import Machine, make_suite
from support.messages_server import KEY, MODEL, Cut, FailingInStream, Fault, MessagesServer, play_policy, serve_messages
from support.playing import ROOT
from support.sandbox import needs_sandbox

pytestmark = [pytest.mark.engine, *needs_sandbox]

CELL = f"error-root-cause/sql/{MODEL}/1"
EXAMPLES = ["claude-code", "python", "node", "shell"]
SCORE = "0.8333"
"""What `newest` earns, whoever drives it."""


@pytest.fixture
def provider() -> Iterator[MessagesServer]:
    scenario = shipped_scenarios_dir() / "error-root-cause"
    with serve_messages(play=play_policy(scenario, "newest", {"query": "sql"}), key=KEY) as server:
        yield server


def agent_of(example: str) -> dict[str, Any]:
    spec = load_suite(ROOT / "examples" / "agents" / f"{example}.yaml").spec
    agent: dict[str, Any] = json.loads(spec.agent.model_dump_json(by_alias=True, exclude_unset=True))
    return agent


def run(machine: Machine, folder: Path, agent: dict[str, Any], provider: MessagesServer) -> dict[str, Any]:
    """Run one cell of the model; return the document."""
    suite = folder / "suite.json"
    suite.write_text(json.dumps(make_suite("runtimes", agent=agent, replicates=1)))
    with_key = Machine(machine.root, {**machine.environment, "ANTHROPIC_API_KEY": KEY})
    model = ("--model", MODEL, "--base-url", provider.url, "--allow-host", provider.host)
    finished = with_key.call("run", str(suite), *model, "--new", "--json", timeout=280)
    assert finished.stdout, finished.stderr
    document: dict[str, Any] = json.loads(finished.stdout)
    return document


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_real_score(machine: Machine, agents: Path, provider: MessagesServer, example: str) -> None:
    """Runtimes: streamed, graded, nothing refused, no tool but the server's; as many turns as any other runtime."""
    broken: list[Fault | None] = [None, FailingInStream(after_events=6), None, Cut(after_events=8)]
    provider.faults.extend(broken if example == "claude-code" else [])  # it asks again, by itself
    document = run(machine, agents, agent_of(example), provider)
    cell = next(cell for cell in document["cells"] if cell["cell"] == CELL)
    assert (cell["outcome"], cell["score"]) == ("completed", SCORE), cell
    assert (cell["turns"], cell["toolCalls"], cell["attempts"]) == (6, 5, 1)
    shown = machine.call("show", "last", MODEL, "--full").stdout
    assert "denied" not in shown
    assert "answer (put):" in shown
    if example == "claude-code":
        log = machine.runs()[-1].parent / "logs" / f"agent-error-root-cause.sql.{MODEL}.1-1.log"
        assert "Claude Code gave its result" in log.read_text()
    # What breaks off, it asks for again, and whole.
    whole = sum(seen.body["stream"] is not True for seen in provider.seen)
    assert whole == (2 if example == "claude-code" else 0)
    prefix = "mcp__tools__" if example == "claude-code" else ""
    for seen in provider.seen:
        assert [tool["name"] for tool in seen.body["tools"]] == [f"{prefix}query"]
        assert "metadata" not in seen.body
