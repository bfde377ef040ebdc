"""Whole runs with a judge: a local server that speaks the Messages API plays it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.judges import constant, honest, in_turn
from support.local_runs import Machine, make_suite
from support.messages_server import KEY, MODEL, MessagesServer, reply_text, serve_messages

JUDGE_KEY = "judge-" + KEY


@pytest.fixture
def provider() -> Iterator[MessagesServer]:
    with serve_messages(honest(), key=JUDGE_KEY) as server:
        yield server


def run_judged(
    machine: Machine, provider: MessagesServer, name: str, **changes: Any
) -> tuple[int, dict[str, Any], str]:
    secret = {"name": "judge", "key": "api-key"}
    judge = {"anthropic": {"model": MODEL, "secretKeyRef": secret, "baseUrl": provider.url}, "votes": 2}
    suite = machine.write_suite(make_suite(name, **{"judge": judge} | changes))
    with_key = Machine(machine.root, {"PROCTOR_SECRET_JUDGE_API_KEY": JUDGE_KEY})
    finished = with_key.call("run", str(suite), "--allow-host", provider.host, "--new", "--json")
    assert JUDGE_KEY not in finished.stdout + finished.stderr
    assert finished.stdout, finished.stderr
    return finished.returncode, json.loads(finished.stdout), finished.stderr


def test_a_suite_with_a_judge_runs_to_its_verdict(
    machine: Machine, reference: dict[str, str | None], provider: MessagesServer
) -> None:
    """Grading rules 1, 6 and 7: scores of checks and judge, its digest fixed before the first cell, its key nowhere."""
    code, document, err = run_judged(machine, provider, "judged")
    status = document["run"]["status"]
    assert (code, status["verdict"]) == (0, "Pass"), err
    assert len(status["digests"]["judge"]) == 64
    cells = {cell["cell"]: cell for cell in document["cells"]}
    newest, loudest = (cells[f"error-root-cause/sql/{model}/1"] for model in ("newest", "loudest"))
    assert newest["score"] != reference["error-root-cause/sql/newest/1"]
    assert [len(mark["votes"]) for mark in newest["judgement"]["marks"]] == [2, 2, 2, 2]
    assert float(newest["judge"]) > 0
    assert float(loudest["score"]) == 0
    assert float(status["controls"]["oracle"]) >= 0.95
    assert len(provider.seen) == 6 + 2 * 2, "the trial, and two votes on each answer that says something"
    shown = machine.call("show", "last", "sql/newest/1")
    assert "judge" in shown.stdout
    assert "gave " in shown.stdout
    asked = len(provider.seen)
    assert status["judge"] == {"model": MODEL, "votes": 2, "inputTokens": 20 * asked, "outputTokens": 7 * asked}
    held = [path for path in machine.data_dir.rglob("*") if path.is_file() and JUDGE_KEY.encode() in path.read_bytes()]
    assert not held


def test_a_judge_that_is_not_trusted_ends_the_run_before_any_agent_starts(
    machine: Machine, reference: dict[str, str | None], provider: MessagesServer
) -> None:
    """P19: planted answers that the judge can't rank: Error, with a reason, and not one attempt."""
    assert reference
    provider.play = constant()
    code, document, err = run_judged(machine, provider, "untrusted")
    status = document["run"]["status"]
    assert (code, status["verdict"], status["reason"]) == (3, "Error", "JudgeNotTrusted"), err
    assert "it gives every planted answer the same" in status["summary"]
    assert {cell["attempts"] for cell in document["cells"]} == {0}


def test_cells_that_the_judge_refuses_are_counted_and_decide_no_pass(
    machine: Machine, reference: dict[str, str | None], provider: MessagesServer
) -> None:
    """Grading rule 7b: an agent can't hide by provoking refusals; ungraded cells counted as 0 must not matter."""
    assert reference
    provider.play = in_turn(*[honest()] * 6, lambda _: reply_text("no", stop_reason="refusal"))
    gate = {"enforcement": "Audit", "minimum": "0.1", "maxUngradedPercent": 100}
    models = [{"name": "newest", "scripted": {"policy": "newest"}}]
    code, document, err = run_judged(machine, provider, "refusing", gate=gate, models=models)
    status = document["run"]["status"]
    assert status["cells"]["ungraded"] == 2, err
    assert (code, status["verdict"]) == (2, "Inconclusive")
    assert all(cell["score"] is None for cell in document["cells"] if cell["state"] == "ungraded")
