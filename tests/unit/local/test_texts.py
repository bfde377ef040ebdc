"""What people read: hostile text made inert, suites changed on the command line, summaries of graders."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
import typer

from proctor.api.run import Verdict
from proctor.api.suite import EvalSuite
from proctor.cli.exits import ExitCode, exit_code_of, explained
from proctor.cli.trajectory import render_marks, render_trajectory
from proctor.core.ids import CellKey
from proctor.core.reports.inert import make_inert
from proctor.core.trajectory.events import Event, EventKind, Status
from proctor.core.trajectory.outcome import AnswerSource
from proctor.errors import InvalidInput, Terminal
from proctor.local.overrides import change_spec, replace_models
from proctor.reconcile.grader_summary import merge_summaries, parse_summary
from support.runs import NOW, make_record, make_suite

CELL = CellKey("error-root-cause", "left", "newest", 1)
HOSTILE = "\x1b[2J\x1b]0;title\x07\u202egnihton\x00\r\nnext"


def test_hostile_text_is_inert() -> None:
    """S33: no escape, no bell, no reversal, no new line reaches the terminal."""
    shown = make_inert(HOSTILE)
    assert shown.isprintable()
    assert "\\u001b" in shown
    assert "\n" in make_inert(HOSTILE, keep_lines=True)
    assert "\x1b" not in make_inert(HOSTILE, keep_lines=True)


@pytest.mark.parametrize("error", [InvalidInput(HOSTILE), Terminal(HOSTILE), RuntimeError(HOSTILE)])
def test_an_error_that_quotes_hostile_text_is_inert(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    """S33: what a failure quotes of a server, an engine or a file reaches the terminal as text."""
    with pytest.raises(typer.Exit), explained():
        raise error
    said = capsys.readouterr().err
    assert "\\u001b" in said
    assert not {"\x1b", "\x07", "\x00", "\u202e"} & set(said)


def test_a_trajectory_full_of_hostile_text_is_inert() -> None:
    """S33: names, previews, error classes, answers and reasons alike."""
    event = Event(
        seq=1,
        ts=NOW + timedelta(seconds=1),
        kind=EventKind.TOOL_CALL,
        name=HOSTILE,
        status=Status.AGENT_ERROR,
        error_class=HOSTILE,
        span_id="0" * 16,
        trace_id="0" * 32,
        request_digest="a",
        request_preview=HOSTILE,
        result_digest="b",
        result_preview=HOSTILE,
    )
    record = make_record(CELL, reason=HOSTILE, answer_source=AnswerSource.PUT, answer_digest="c")
    for full in (False, True):
        bodies = {name: HOSTILE.encode() for name in "abc"}
        text = render_trajectory(record, (event,), bodies, full=full)
        assert all(line.isprintable() for line in text.split("\n"))
    marks = {"score": "1", "programmatic": {"score": "1", "checks": [{"id": HOSTILE, "why": HOSTILE}]}}
    assert all(line.isprintable() for line in render_marks(marks).split("\n"))


def test_a_model_on_the_command_line_replaces_the_suites_models() -> None:
    """`proctor run suite.yaml --model claude-…`: the same cells on a real model, key by reference only."""
    suite = EvalSuite.model_validate(
        {
            "apiVersion": "proctor.dev/v1alpha1",
            "kind": "EvalSuite",
            "metadata": {"name": "s"},
            "spec": make_suite().to_file(),
        }
    )
    changed = replace_models(suite, "claude-Opus-4.7", base_url="http://127.0.0.1:9000")
    [model] = changed.spec.models
    assert model.name == "claude-opus-4-7"
    assert model.anthropic is not None
    assert (model.anthropic.model, model.anthropic.url) == ("claude-Opus-4.7", "http://127.0.0.1:9000")
    with pytest.raises(InvalidInput, match="--replicates 1"):
        change_spec(suite, "--replicates 1", replicates=1)
    with pytest.raises(InvalidInput, match="--model"):
        replace_models(suite, "no such model!")


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        (Verdict.PASS, 0),
        (Verdict.FAIL, 1),
        (Verdict.INCONCLUSIVE, 2),
        (Verdict.ERROR, 3),
        (Verdict.CANCELLED, 3),
    ],
)
def test_exit_codes(verdict: Verdict, code: int) -> None:
    """api 5.6."""
    assert exit_code_of(verdict) == code
    assert ExitCode.TIMEOUT == 4
    assert ExitCode.USAGE == 64
    assert ExitCode.INTERRUPTED == 130


def test_a_graders_summary_is_read_strictly() -> None:
    """Ungraded is never 0 (P18), and a damaged summary is no summary."""
    body = b"""{"grades": {"error-root-cause/left/newest/1": {"attempt": 2, "score": "0.75"},
    "error-root-cause/left/newest/2": {"attempt": 1, "score": null, "ungraded": "no reply"}},
    "rubricDigest": "ab", "judgeDigest": "", "fault": ""}"""
    seen = parse_summary(body)
    assert seen.grades[CELL].score == Decimal("0.75")
    assert seen.grades[CELL].attempt == 2
    assert seen.grades[replace(CELL, replicate=2)].score is None
    assert (seen.agreement, seen.judge_tokens) == (None, (0, 0))
    judge = b'"judge": {"agreement": "0.8125", "inputTokens": 40, "outputTokens": 99999999999}, "fault"'
    judged = parse_summary(body.replace(b'"fault"', judge))
    assert (judged.agreement, judged.judge_tokens) == (Decimal("0.8125"), (40, 10**9))
    fresh = replace(seen, grades={})
    assert merge_summaries(seen, fresh).grades == seen.grades
    assert merge_summaries(seen, replace(fresh, rubric_digest="cd")).grades == {}
    for bad in (b"", b"[]", b'{"grades": []}', b'{"grades": {"x": {}}}', body.replace(b'"0.75"', b'"much"')):
        with pytest.raises(Terminal, match="summary"):
            parse_summary(bad)
