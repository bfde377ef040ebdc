"""`proctor grade` and `proctor scenario`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from proctor.cli.app import app
from support.playing import SCENARIOS

SCENARIO = "error-root-cause"
RIGHT = "Root cause: payments-api can't connect to payments-pg-2.db.fernway.internal (DBTimeout)."


def run(*words: str, sent: str = "") -> Result:
    return CliRunner().invoke(app, list(words), input=sent)


def grade(tmp_path: Path, answer: str, *words: str) -> Result:
    command = ("grade", "--scenario", SCENARIO, "--answer", "-", "--scenarios", str(SCENARIOS))
    return run(*command, "--data-dir", str(tmp_path), *words, sent=answer)


def test_any_text_is_graded_as_json(tmp_path: Path) -> None:
    """Issue, part 8: grades any text without a server running, every check with its reason."""
    result = grade(tmp_path, RIGHT, "--judge", "none", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["score"] == found["programmatic"]["score"] > 0.5
    assert (found["judge"], found["scored_by"], found["facts_from"]) == (None, "programmatic", "reference record")
    assert {"id", "weight", "polarity", "satisfied", "why"} == set(found["programmatic"]["checks"][0])


def test_a_file_is_graded_as_a_table(tmp_path: Path) -> None:
    """Issue, part 8: the same for people; the answer's own words are never markup."""
    answer = tmp_path / "answer.md"
    answer.write_text(RIGHT + " [bold]see[/nothing]")
    result = run("grade", "--scenario", SCENARIO, "--answer", str(answer), "--data-dir", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "root-service" in result.stdout
    assert "scored" not in result.stdout
    assert "programmatic" in result.stdout


def test_the_brief_is_what_the_agent_is_told_and_earns_nothing(tmp_path: Path) -> None:
    """Issue, part 8 and done means: `scenario brief` prints what the agent is told; pasted back it scores 0."""
    told = run("scenario", "brief", SCENARIO, "--scenarios", str(SCENARIOS))
    assert told.exit_code == 0
    assert "site reliability engineer" in told.stdout
    assert "checkouts" in told.stdout
    assert json.loads(grade(tmp_path, told.stdout, "--json").stdout)["score"] == 0
    as_json = json.loads(run("scenario", "brief", SCENARIO, "--json").stdout)
    assert set(as_json) == {"system", "prompt"}


@pytest.mark.parametrize("answer", ["", "I can't determine the root cause.", "\x00\x01", "🙂"])
def test_empty_answers_and_refusals_score_zero(answer: str, tmp_path: Path) -> None:
    """Done means: an empty answer, the brief pasted back, a refusal: 0."""
    assert json.loads(grade(tmp_path, answer, "--json").stdout)["score"] == 0


@pytest.mark.parametrize(
    "words",
    [
        ("grade", "--scenario", "nothing", "--answer", "-"),
        ("grade", "--scenario", SCENARIO, "--answer", "/no/such/file"),
        ("grade", "--scenario", SCENARIO, "--answer", "-", "--judge", "claude"),
        ("scenario", "brief", "nothing"),
        ("scenario", "brief", SCENARIO, "--anchor", "yesterday"),
        ("scenario", "brief", SCENARIO, "--anchor", "2026-11-30T12:00:00"),
    ],
)
def test_bad_usage_is_said_with_its_exit_code(words: tuple[str, ...]) -> None:
    """Exit codes: 64 bad usage."""
    result = run(*words, sent=RIGHT)
    assert result.exit_code == 64
    assert result.stderr.startswith("proctor: ")


def test_what_must_be_run_is_refused() -> None:
    """Exit codes, M-A9: an answer that is run over a dataset can't be graded where none is served."""
    result = run("grade", "--scenario", "dashboard-build", "--answer", "-", "--scenarios", str(SCENARIOS), sent="{}")
    assert result.exit_code == 64
    assert "`proctor run` grades them" in result.stderr


def test_scenarios_are_listed() -> None:
    """`proctor scenario ls`."""
    assert SCENARIO in run("scenario", "ls").stdout.split()
    assert SCENARIO in json.loads(run("scenario", "ls", "--json").stdout)
