"""How an attempt ended, as a table (manifest: outcomes and time)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from proctor.core.trajectory.deciding import AttemptFacts, decide_outcome
from proctor.core.trajectory.outcome import ExitCause, Limit, Outcome, ProcessExit

DONE = AttemptFacts(requests=9, turns=4, tool_calls=3, answered=True)
EXITED = ProcessExit(ExitCause.EXITED, 0)
CRASHED = ProcessExit(ExitCause.EXITED, 1, "Traceback")


@dataclass(frozen=True)
class Case:
    id: str
    facts: AttemptFacts
    process: ProcessExit
    outcome: Outcome


CASES = [
    Case("answered", DONE, EXITED, Outcome.COMPLETED),
    Case("no answer", replace(DONE, answered=False), EXITED, Outcome.GAVE_UP),
    Case("no tool call", replace(DONE, tool_calls=0), EXITED, Outcome.GAVE_UP),
    Case("no model call", replace(DONE, turns=0), EXITED, Outcome.AGENT_ERROR),
    Case("no request", AttemptFacts(requests=0, turns=0, tool_calls=0, answered=False), EXITED, Outcome.INFRA_ERROR),
    Case(
        "no request, crashed",
        AttemptFacts(requests=0, turns=0, tool_calls=0, answered=False),
        CRASHED,
        Outcome.INFRA_ERROR,
    ),
    Case("crashed", DONE, CRASHED, Outcome.AGENT_ERROR),
    Case("killed by a signal", DONE, ProcessExit(ExitCause.EXITED, -11), Outcome.AGENT_ERROR),
    Case("no exit code", DONE, ProcessExit(ExitCause.EXITED, None), Outcome.AGENT_ERROR),
    Case("too much, then a polite end", DONE, ProcessExit(ExitCause.EXCESS, 0, "it made files"), Outcome.AGENT_ERROR),
    Case("out of memory", DONE, ProcessExit(ExitCause.MEMORY), Outcome.AGENT_ERROR),
    Case(
        "out of memory past a limit",
        replace(DONE, limit=Limit.TURNS),
        ProcessExit(ExitCause.MEMORY),
        Outcome.AGENT_ERROR,
    ),
    Case("turns", replace(DONE, limit=Limit.TURNS), EXITED, Outcome.TURN_LIMIT),
    Case("turns, then crashed", replace(DONE, limit=Limit.TURNS), CRASHED, Outcome.TURN_LIMIT),
    Case("calls", replace(DONE, limit=Limit.CALLS), EXITED, Outcome.BUDGET_LIMIT),
    Case("tokens", replace(DONE, limit=Limit.TOKENS), EXITED, Outcome.BUDGET_LIMIT),
    Case("usd", replace(DONE, limit=Limit.USD), EXITED, Outcome.BUDGET_LIMIT),
    Case("time at the gateway", replace(DONE, limit=Limit.TIME), EXITED, Outcome.TIME_LIMIT),
    Case("killed at the deadline", DONE, ProcessExit(ExitCause.DEADLINE), Outcome.TIME_LIMIT),
    Case("hung, answer sent", replace(DONE, sent=True), ProcessExit(ExitCause.HUNG, -15), Outcome.COMPLETED),
    Case("hung, answer only said", DONE, ProcessExit(ExitCause.HUNG, -9), Outcome.AGENT_ERROR),
    Case(
        "hung without one request",
        AttemptFacts(requests=0, turns=0, tool_calls=0, answered=False),
        ProcessExit(ExitCause.HUNG, -9),
        Outcome.INFRA_ERROR,
    ),
    Case("hung at a limit", replace(DONE, limit=Limit.TURNS), ProcessExit(ExitCause.HUNG, -9), Outcome.TURN_LIMIT),
    Case(
        "deadline after a limit",
        replace(DONE, limit=Limit.CALLS),
        ProcessExit(ExitCause.DEADLINE),
        Outcome.BUDGET_LIMIT,
    ),
    Case("provider down", replace(DONE, infra_failure="529"), CRASHED, Outcome.INFRA_ERROR),
    Case(
        "provider down past a limit", replace(DONE, infra_failure="529", limit=Limit.TURNS), EXITED, Outcome.INFRA_ERROR
    ),
    Case(
        "provider down at the deadline",
        replace(DONE, infra_failure="x"),
        ProcessExit(ExitCause.DEADLINE),
        Outcome.INFRA_ERROR,
    ),
    Case("lost", DONE, ProcessExit(ExitCause.LOST), Outcome.INFRA_ERROR),
    Case("never started", replace(DONE, requests=0), ProcessExit(ExitCause.START_FAILED), Outcome.INFRA_ERROR),
    Case("stopped", DONE, ProcessExit(ExitCause.CANCELLED), Outcome.INFRA_ERROR),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_outcome(case: Case) -> None:
    """P6, P7, P25, P27: the gateway's record decides, and infrastructure's failure is never the agent's."""
    ending = decide_outcome(case.facts, case.process)
    assert ending.outcome is case.outcome
    assert ending.reason


@pytest.mark.parametrize("cause", ExitCause)
@pytest.mark.parametrize("limit", [None, *Limit])
def test_every_combination_is_decided(cause: ExitCause, limit: Limit | None) -> None:
    """P6: no cause and no limit is left without an outcome."""
    ending = decide_outcome(replace(DONE, limit=limit), ProcessExit(cause, 0, "x" * 4000))
    assert len(ending.reason) <= 400
