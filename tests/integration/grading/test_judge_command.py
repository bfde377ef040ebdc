"""`proctor grade --judge MODEL`, against a local provider that plays judges."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from proctor.cli.app import app
from support.judges import SCENARIO, constant, honest, in_turn
from support.messages_server import KEY, MODEL, MessagesServer, reply_text, serve_messages

ANSWER = "Checkouts fail because payments-api times out when it connects to its database."


def grade(server: MessagesServer, tmp_path: Path, *words: str, answer: str = ANSWER) -> Result:
    folder = tmp_path / "secrets" / "anthropic"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "api-key").write_text(KEY)
    command = ("grade", "--scenario", SCENARIO, "--answer", "-", "--data-dir", str(tmp_path), "--judge", MODEL)
    place = ("--base-url", server.url, "--allow-host", server.host, "--secrets", str(tmp_path / "secrets"))
    return CliRunner().invoke(app, [*command, *place, *words], input=answer)


def test_a_text_is_judged_as_in_a_run(tmp_path: Path) -> None:
    """Grading rules 1 and 6: checks and judge, with votes; the judge is tried on planted answers first."""
    with serve_messages(honest()) as server:
        result = grade(server, tmp_path, "--votes", "3", "--json")
        table = grade(server, tmp_path)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["scored_by"] == "programmatic+judge"
    assert found["score"] == pytest.approx(0.4 * found["programmatic"]["score"] + 0.6 * found["judge"], abs=1e-4)
    assert [len(mark["votes"]) for mark in found["judgement"]["marks"]] == [3, 3, 3, 3]
    assert len(server.seen) == 6 + 3 + 6 + 1
    assert "correctness" in table.stdout
    assert "/5" in table.stdout
    assert KEY not in result.output + table.output


def test_nothing_to_ask(tmp_path: Path) -> None:
    """Grading rule 2: an answer without any positive check is 0, and no request is made."""
    with serve_messages(honest()) as server:
        result = grade(server, tmp_path, "--json", answer="")
    assert json.loads(result.stdout)["score"] == 0
    assert not server.seen


def test_a_judge_that_is_not_trusted_grades_nothing(tmp_path: Path) -> None:
    """P19: exit 3 and why, never a score."""
    with serve_messages(constant()) as server:
        result = grade(server, tmp_path, "--json")
    assert result.exit_code == 3
    assert "every planted answer the same" in result.stderr
    assert not result.stdout


def test_a_refusal_is_ungraded(tmp_path: Path) -> None:
    """P18: never 0."""
    play = in_turn(*[honest()] * 6, lambda _: reply_text("no", stop_reason="refusal"))
    with serve_messages(play) as server:
        result = grade(server, tmp_path)
    assert result.exit_code == 3
    assert "ungraded: " in result.stderr


def test_a_host_that_is_not_allowed_gets_no_key(tmp_path: Path) -> None:
    """S15: the key goes to allowed hosts only."""
    with serve_messages(honest()) as server:
        result = grade(server, tmp_path, "--base-url", "http://127.0.0.1:9")
    assert result.exit_code == 64
    assert "not allowed" in result.stderr
