"""What can be said of a suite's judge before anything is started."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from proctor.errors import InvalidInput
from proctor.local.preflight import check_request
from proctor.local.request import RunRequest, SandboxChoice
from support.manifests import suite
from support.playing import SCENARIOS

SCENARIO = "error-root-cause"


def make_request(scenarios: Path, **judge: object) -> RunRequest:
    model = {"model": "claude-judge", "secretKeyRef": {"name": "a", "key": "k"}} | judge
    return RunRequest(
        suite=suite(judge={"anthropic": model}),
        data_dir=scenarios / "data",
        scenarios_dirs=(scenarios,),
        sandbox=SandboxChoice.NONE,
    )


def find_problems(request: RunRequest) -> str:
    try:
        check_request(request)
    except InvalidInput as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("high", "refused"), [("'0.1'", False), ("'0'", True)])
def test_a_scenario_without_answers_to_plant_is_refused_before_it_is_seeded(
    high: str, refused: bool, tmp_path: Path
) -> None:
    """P19: a judge that can't be tried would be found out only after minutes of seeding."""
    folder = tmp_path / SCENARIO
    shutil.copytree(SCENARIOS / SCENARIO, folder)
    key = folder / "answer.yaml"
    key.write_text(key.read_text().replace("high: '0.1'", f"high: {high}"))
    assert ("a judge is tried on a right and a wrong one" in find_problems(make_request(tmp_path))) == refused


def test_a_judges_host_must_be_allowed() -> None:
    """S15: a key goes to allowed hosts only, the judge's too."""
    assert "judge: host" in find_problems(make_request(SCENARIOS, baseUrl="https://judge.example"))
