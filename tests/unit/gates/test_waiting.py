"""Waiting for a verdict: what ends it, and what does not."""

from __future__ import annotations

import asyncio

import pytest

from proctor.api.run import Verdict
from proctor.cluster.waiting import LOOKS_FOR_ABSENT, Target, await_verdict
from proctor.errors import InvalidInput, ProctorError, Retryable, Terminal
from proctor.reconcile.answers import Answer
from support.readers import MemoryReader
from support.statuses import PASSING, PROGRESSING, STOPPED, SUITES_PASSING, SUITES_PROGRESSING, Object

RUN = Target(namespace="evals", name="nightly")
SUITE = Target(namespace="evals", name="sql-servers", suite=True)
RUNNING = PROGRESSING["running"]
AWAY = Retryable("GET /apis/proctor.dev: connection reset", delay=7.0)


def wait(*replies: Object | ProctorError | None, target: Target = RUN) -> tuple[Answer, list[str], list[float]]:
    said: list[str] = []
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    answer = asyncio.run(await_verdict(MemoryReader(list(replies)), target, said.append, sleep=sleep))
    return answer, said, slept


def test_it_waits_for_the_newest_generations_verdict() -> None:
    stale = PROGRESSING["an old Pass, and a newer generation"]
    answer, said, slept = wait(None, stale, RUNNING, RUNNING, STOPPED["Fail"])
    assert answer.verdict is Verdict.FAIL
    assert said[0] == "EvalRun evals/nightly is not there yet"
    assert "generation 4" in said[1]
    assert len(slept) == 4


def test_a_lost_connection_is_no_answer() -> None:
    """Whatever drops, the object is read anew; as late as the server asks for."""
    answer, said, slept = wait(RUNNING, AWAY, AWAY, RUNNING, PASSING["Pass"])
    assert answer.verdict is Verdict.PASS
    assert [line for line in said if "trying again" in line] == [f"{AWAY}; trying again"]
    assert slept == [2.0, 7.0, 7.0, 2.0]


def test_a_suites_gate_is_waited_for() -> None:
    answer, _, _ = wait(*SUITES_PROGRESSING.values(), SUITES_PASSING["Pass"], target=SUITE)
    assert (answer.verdict, answer.run) == (Verdict.PASS, "sql-servers-1")


def test_a_wrong_name_ends_it() -> None:
    with pytest.raises(InvalidInput, match="check the name and --namespace"):
        wait(None)
    answer, _, _ = wait(*[None] * (LOOKS_FOR_ABSENT - 1), PASSING["Pass"])
    assert answer.verdict is Verdict.PASS


@pytest.mark.parametrize("refusal", [Terminal("reading EvalRun evals/nightly: 403"), None])
def test_what_will_never_answer_ends_it(refusal: ProctorError | None) -> None:
    with pytest.raises(Terminal):
        wait(RUNNING, refusal)
