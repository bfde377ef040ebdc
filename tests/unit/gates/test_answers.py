"""Objects of an API server → the one answer that gates get."""

from __future__ import annotations

import pytest

from proctor.api.run import Verdict
from proctor.errors import InvalidInput
from proctor.reconcile.answers import answer_run, answer_suite
from support.statuses import (
    PASSING,
    PROGRESSING,
    STOPPED,
    SUITE_UNGATED,
    SUITES_PASSING,
    SUITES_PROGRESSING,
    SUITES_STOPPED,
    SUSPENDED,
    UNKNOWN,
    Object,
    refused_suite,
)


@pytest.mark.parametrize("body", [*PROGRESSING.values(), SUSPENDED], ids=[*PROGRESSING, "suspended"])
def test_a_run_without_a_verdict_on_its_newest_generation_is_pending(body: Object) -> None:
    """A stale verdict is no answer (argo-cd#4669)."""
    answer = answer_run(body)
    assert (answer.verdict, answer.passes, answer.run) == (Verdict.PENDING, False, "nightly")


@pytest.mark.parametrize("body", [*PASSING.values(), *STOPPED.values()], ids=[*PASSING, *STOPPED])
def test_a_finished_run_says_its_verdict_and_whether_the_gate_is_open(body: Object) -> None:
    answer = answer_run(body)
    assert answer.verdict.value == body["status"]["verdict"]
    assert answer.passes == (body in PASSING.values())
    assert (answer.reason, answer.summary) == ("Because", "it is so")


@pytest.mark.parametrize("body", SUITES_PROGRESSING.values(), ids=SUITES_PROGRESSING)
def test_a_suites_gate_is_pending_until_its_own_run_has_ended(body: Object) -> None:
    answer = answer_suite(body)
    assert (answer.verdict, answer.passes) == (Verdict.PENDING, False)


@pytest.mark.parametrize(
    "body", [*SUITES_PASSING.values(), *SUITES_STOPPED.values()], ids=[*SUITES_PASSING, *SUITES_STOPPED]
)
def test_a_suites_gate_says_what_its_run_said(body: Object) -> None:
    answer = answer_suite(body)
    assert answer.verdict.value == body["status"]["gate"]["verdict"]
    assert answer.passes == (body in SUITES_PASSING.values())
    assert answer.run == "sql-servers-1"


def test_a_suite_that_can_never_run_is_an_error() -> None:
    answer = answer_suite(refused_suite())
    assert (answer.verdict, answer.reason, answer.passes) == (Verdict.ERROR, "InvalidSpec", False)
    assert answer.summary == "schedule names no time"


def test_a_suite_that_gates_nothing_has_no_answer() -> None:
    """To wait for it would be to wait for ever."""
    with pytest.raises(InvalidInput, match=r"set spec\.runOnChange: true"):
        answer_suite(SUITE_UNGATED)


def test_a_word_of_the_future_is_no_verdict() -> None:
    with pytest.raises(InvalidInput, match="another version of Proctor"):
        answer_run(UNKNOWN)
