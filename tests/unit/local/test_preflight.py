"""What is refused before anything is started, and at no cost."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from proctor.cli.app import app
from proctor.cli.exits import ExitCode
from proctor.errors import InvalidInput
from proctor.local.locks import hold_data_dir
from proctor.local.preflight import check_request
from proctor.local.request import RunRequest, SandboxChoice
from support.manifests import suite
from support.playing import SCENARIOS

SCENARIO = "error-root-cause"


def make_request(scenarios: Path, policy: str) -> RunRequest:
    models = [{"name": "newest", "scripted": {"policy": policy}}]
    return RunRequest(
        suite=suite(models=models),
        data_dir=scenarios / "data",
        scenarios_dirs=(scenarios,),
        sandbox=SandboxChoice.NONE,
    )


def test_a_policy_that_no_scenario_has_is_named_with_those_it_has() -> None:
    """M-A1: a name written wrong is no cell lost to infrastructure."""
    with pytest.raises(InvalidInput, match=r"scripted policy 'newst': the scenario has only .*newest"):
        check_request(make_request(SCENARIOS, "newst"))


@pytest.mark.parametrize("part", ["answer.yaml", "brief.yaml", "policies.yaml"])
def test_a_scenario_file_that_is_none_is_refused(part: str, tmp_path: Path) -> None:
    """M-A1: before a run is made, and not after its dataset."""
    folder = tmp_path / SCENARIO
    shutil.copytree(SCENARIOS / SCENARIO, folder)
    (folder / part).write_text("nothing: known\n")
    with pytest.raises(InvalidInput, match=part):
        check_request(make_request(tmp_path, "newest"))


async def test_a_data_dir_that_can_not_be_is_bad_usage(tmp_path: Path) -> None:
    """M-A1: exit 64, and what to name instead."""
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InvalidInput, match="choose another with --data-dir"):
        async with hold_data_dir(file, "run", lambda _: None, asyncio.Event()):
            pass


def test_seeding_into_a_file_is_bad_usage_too(tmp_path: Path) -> None:
    """M-A1: a wrong data dir is the same mistake, whichever command is given it."""
    file = tmp_path / "file"
    file.touch()
    result = CliRunner().invoke(app, ["dataset", "seed", SCENARIO, "--data-dir", str(file)])
    assert result.exit_code == ExitCode.USAGE
    assert "choose another with --data-dir" in result.output


def test_an_option_that_would_be_ignored_is_refused() -> None:
    """M-A1: a user for agents is nothing without a ClickHouse of one's own."""
    result = CliRunner().invoke(app, ["run", "--agent-url", "http://reader@127.0.0.1:1", "suite.yaml"])
    assert result.exit_code in {2, ExitCode.USAGE}
    assert "--clickhouse-url" in result.output
