"""Every example and the starter are valid, and say what the README says of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.adapters.sandbox.claude_code import CLAUDE_CODE_VERSION
from proctor.api.loading import load_suite, parse_suite
from proctor.api.locality import unsupported_locally
from proctor.api.starter import STARTER
from proctor.core.scenarios.folder import list_scenarios
from proctor.reconcile.cells import expand_cells

ROOT = Path(__file__).resolve().parents[2]
AGENTS = ROOT / "examples" / "agents"
EXAMPLES = sorted([*(ROOT / "examples").glob("*.yaml"), *AGENTS.glob("*.yaml")])
SCENARIOS = [ROOT / "scenarios"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_valid_and_runs_on_one_machine(path: Path) -> None:
    """M-D4: examples are tested, scenarios and all."""
    suite = load_suite(path, scenario_dirs=SCENARIOS)
    assert suite.metadata.name == path.stem
    assert unsupported_locally(suite.spec) == []


def test_the_starter_is_valid() -> None:
    """Manifest: `proctor init` writes what `proctor validate` accepts."""
    assert parse_suite(STARTER, file="starter", scenario_dirs=SCENARIOS).spec.replicates >= 3


def test_the_quickstart_compares_two_real_servers_without_a_key() -> None:
    """Quickstart: two servers × loudest and newest, maxDrop against mcp-clickhouse."""
    spec = load_suite(ROOT / "examples" / "quickstart.yaml").spec
    assert [server.name for server in spec.servers] == ["mcp-clickhouse", "clickscope"]
    assert {model.scripted.policy for model in spec.models if model.scripted} == {"loudest", "newest"}
    assert len(spec.models) == 2
    assert spec.gate.baseline is not None
    assert spec.gate.baseline.server == "mcp-clickhouse"
    assert spec.gate.max_drop is not None
    assert len(expand_cells(spec)) == 16
    assert "list_running_queries" not in (spec.servers[1].allowed_tools or ())


def test_one_example_has_every_scenario() -> None:
    """M-A3: a scenario that ships is run by examples/all-scenarios.yaml."""
    spec = load_suite(ROOT / "examples" / "all-scenarios.yaml").spec
    assert {scenario.name for scenario in spec.scenarios} == set(list_scenarios(ROOT / "scenarios"))


def test_the_examples_of_agents_need_what_the_tests_run() -> None:
    """Runtimes: the versions that the examples name are those that they are tested with; the shell one is short."""
    pinned = (ROOT / "constraints.txt").read_text().splitlines()
    assert set((AGENTS / "python" / "requirements.txt").read_text().splitlines()) <= set(pinned)
    tested = json.loads((ROOT / "tests" / "npm" / "package.json").read_text())["dependencies"]
    assert json.loads((AGENTS / "node" / "package.json").read_text())["dependencies"].items() <= tested.items()
    assert f"@{CLAUDE_CODE_VERSION}" in (AGENTS / "claude-code.yaml").read_text()
    assert tested["@anthropic-ai/claude-code"] == CLAUDE_CODE_VERSION
    assert len((AGENTS / "shell" / "agent.sh").read_text().splitlines()) <= 30
