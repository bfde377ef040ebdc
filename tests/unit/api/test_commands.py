"""`proctor validate` and `proctor init`: what they print, and how they exit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from proctor.cli.app import app
from support.manifests import manifest, text

RUNNER = CliRunner()


def _write(folder: Path, **spec: object) -> str:
    path = folder / "suite.yaml"
    path.write_text(text(manifest(**spec)))
    return str(path)


def test_a_valid_manifest_is_0_and_says_what_is_ignored(tmp_path: Path) -> None:
    """M-D4, manifest: ignored fields are said to be."""
    outcome = RUNNER.invoke(app, ["validate", _write(tmp_path, runOnChange=True)])
    assert outcome.exit_code == 0
    assert "valid: suite made, 10 cells" in outcome.output
    assert "ignored on one machine: spec.runOnChange" in outcome.output


def test_a_manifest_that_may_grow_shows_the_least_and_the_most(tmp_path: Path) -> None:
    """Adaptive: cells of a run that its first block settles, and of one that takes all replicates."""
    outcome = RUNNER.invoke(app, ["validate", _write(tmp_path, adaptive={"maxReplicates": 12})])
    assert "valid: suite made, 10 to 28 cells" in outcome.output


def test_a_bad_manifest_is_64_with_every_problem(tmp_path: Path) -> None:
    """Exit codes: 64 bad usage or manifest."""
    outcome = RUNNER.invoke(app, ["validate", _write(tmp_path, replicates=1, parallelism="x")])
    assert outcome.exit_code == 64
    assert "spec.parallelism" in outcome.output


def test_json_for_machines(tmp_path: Path) -> None:
    """Manifest: file, line, field, message and fix as fields."""
    outcome = RUNNER.invoke(app, ["validate", "--json", _write(tmp_path, parallelism=0)])
    found = json.loads(outcome.output)
    assert found["valid"] is False
    (problem,) = found["problems"]
    assert problem["field"] == "spec.parallelism"
    assert problem["line"] > 1
    assert set(problem) == {"file", "line", "field", "message", "fix"}


def test_an_unknown_scenario_is_64(tmp_path: Path) -> None:
    """Bad input: unknown scenario, unless --scenarios has it."""
    path = _write(tmp_path, scenarios=[{"name": "own"}])
    assert RUNNER.invoke(app, ["validate", path]).exit_code == 64
    (tmp_path / "mine" / "own").mkdir(parents=True)
    (tmp_path / "mine" / "own" / "brief.yaml").touch()
    assert RUNNER.invoke(app, ["validate", path, "--scenarios", str(tmp_path / "mine")]).exit_code == 0


@pytest.mark.parametrize("command", [["validate"], ["plan"], ["run", "--dry-run"]])
def test_a_folder_of_scenarios_that_is_not_there_is_no_shipped_one(tmp_path: Path, command: list[str]) -> None:
    """Bad input: a misspelt --scenarios would else measure what ships, and say nothing."""
    outcome = RUNNER.invoke(app, [*command, _write(tmp_path), "--scenarios", str(tmp_path / "mien")])
    assert outcome.exit_code != 0
    assert "does not exist" in " ".join(outcome.output.replace("│", " ").split())


def test_init_writes_a_manifest_that_validates_and_never_overwrites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Manifest: a commented starter."""
    monkeypatch.chdir(tmp_path)
    assert RUNNER.invoke(app, ["init"]).exit_code == 0
    assert RUNNER.invoke(app, ["validate", "suite.yaml"]).exit_code == 0
    Path("suite.yaml").write_text("mine")
    outcome = RUNNER.invoke(app, ["init"])
    assert outcome.exit_code == 64
    assert "--force" in outcome.output
    assert Path("suite.yaml").read_text() == "mine"
    assert RUNNER.invoke(app, ["init", "--force"]).exit_code == 0
    assert Path("suite.yaml").read_text().startswith("# An EvalSuite")
