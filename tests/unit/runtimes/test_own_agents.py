"""An agent of one's own: from its command in the suite to its sandbox, and when it counts as hanging."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from proctor.adapters.control import OpenProgress
from proctor.adapters.sandbox.agents import AgentPlace
from proctor.adapters.sandbox.own_agents import OwnAgent, own_agent_spec
from proctor.adapters.sandbox.places import own_places
from proctor.adapters.sandbox.spec import Isolation, SandboxSpec
from proctor.api.suite import EvalSuite
from proctor.errors import InvalidInput
from proctor.local.launching import Patience
from support.local_runs import make_suite


def build(folder: Path, *command: str, isolation: Isolation = Isolation.BWRAP, **environment: str) -> SandboxSpec:
    agent = OwnAgent(command=command, environment=environment, folder=folder, search_path="/usr/bin:/bin")
    place = AgentPlace(socket=Path("/run/x/a.sock"), token="tok", isolation=isolation)
    return own_agent_spec(agent, place)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "agent.sh").write_text("exit 0\n")
    return tmp_path


def test_it_is_told_where_the_gateway_is_and_nothing_else(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runtimes, S8, S15: the contract's variables and the suite's own; nothing is inherited."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-real")
    spec = build(folder, "sh", "./mine/agent.sh", LEVEL="3")
    assert spec.environment == {
        "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "PATH": "/usr/bin:/usr/local/bin", "LEVEL": "3",
        "PROCTOR_GATEWAY": "http://127.0.0.1:8787", "PROCTOR_SOCKET": "/run/gateway.sock", "PROCTOR_TOKEN": "tok",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:8787", "ANTHROPIC_API_KEY": "tok",
    }  # fmt: skip
    assert spec.ways is not None
    assert spec.ways.out == {8787: "/run/gateway.sock"}


def test_its_folder_is_shown_and_nothing_of_ours(folder: Path) -> None:
    """Runtimes, S20: paths lead from the suite's folder; sources, scenarios and data stay out."""
    spec = build(folder, "sh", "./mine/agent.sh")
    assert spec.command[1:] == (str(folder / "mine" / "agent.sh"),)
    sources = {mount.source for mount in spec.mounts}
    assert folder / "mine" in sources
    assert not any(place.is_relative_to(source) for source in sources for place in own_places() if source != place)


def test_a_file_that_is_not_there_is_refused(folder: Path) -> None:
    """Runtimes: before anything starts, with the path that was looked for."""
    with pytest.raises(InvalidInput, match=r"'\./mine/other\.sh': there is no .*/mine/other\.sh"):
        build(folder, "sh", "./mine/other.sh")
    with pytest.raises(InvalidInput, match="no such program"):
        build(folder, "no-such-program")


def test_without_a_sandbox_each_agent_has_a_port_of_its_own(folder: Path) -> None:
    """--sandbox=none: two agents at once must not meet on one port."""
    specs = [build(folder, "sh", "./mine/agent.sh", isolation=Isolation.NONE) for _ in range(2)]
    for spec in specs:
        assert spec.ways is None
        assert spec.environment["PROCTOR_SOCKET"] == "/run/x/a.sock"
        port = spec.environment["PROCTOR_GATEWAY"].rpartition(":")[2]
        assert spec.command[spec.command.index("--connect") + 1] == port


@pytest.mark.parametrize(
    "variable",
    [
        {"name": "KEY", "secretKeyRef": {"name": "a", "key": "b"}},
        {"name": "PROCTOR_TOKEN", "value": "x"},
        {"name": "ANTHROPIC_API_KEY", "value": "x"},
        {"name": "ANTHROPIC_BASE_URL", "value": "https://elsewhere"},
    ],
    ids=lambda variable: variable["name"],
)
def test_no_secret_and_no_other_way(variable: dict[str, Any]) -> None:
    """Manifest: an agent's variables are plain values, and can't lead it past the gateway."""
    agent = {"runtime": "Command", "command": {"command": ["agent"], "env": [variable]}}
    with pytest.raises(ValidationError):
        EvalSuite.model_validate(make_suite(agent=agent))


@pytest.mark.parametrize(
    ("progress", "silent", "hangs"),
    [
        (OpenProgress(quiet_us=119_000_000), 500.0, False),
        (OpenProgress(quiet_us=500_000_000), 119.0, False),
        (OpenProgress(quiet_us=121_000_000), 121.0, True),
        (OpenProgress(quiet_us=11_000_000, answered=True), 11.0, True),
        (OpenProgress(quiet_us=9_000_000, answered=True), 500.0, False),
        (OpenProgress(), 5000.0, False),
    ],
)
def test_p25_when_it_counts_as_hanging(progress: OpenProgress, silent: float, *, hangs: bool) -> None:
    """P25: no request that is open, none lately, no output; sooner once the answer is there."""
    assert bool(Patience().find_hang(progress, silent)) is hangs
