"""How an attempt ended, decided from what the gateway saw and how the agent's process ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, assert_never

from proctor.core.trajectory.outcome import ExitCause, Limit, Outcome, ProcessExit

_MAX_REASON = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFacts:
    """What the gateway saw of an attempt.

    Attributes:
        requests: requests with a good token, at any door.
        turns: model calls that were answered.
        tool_calls: tool calls that were passed on, or answered with a tool error.
        answered: there is an answer, sent or said.
        sent: there is one that was sent.
        limit: the budget that was hit first; None if none was.
        infra_failure: why infrastructure failed the attempt for good; empty if it did not.
    """

    requests: int
    turns: int
    tool_calls: int
    answered: bool
    sent: bool = False
    limit: Limit | None = None
    infra_failure: str = ""


class Ending(NamedTuple):
    """How an attempt ended, and one line that says why."""

    outcome: Outcome
    reason: str


def decide_outcome(facts: AttemptFacts, process: ProcessExit) -> Ending:
    """Decide how an attempt ended.

    Infrastructure comes first: what it broke says nothing about the agent. Then the agent's own limits, then a crash,
    then what it left behind. An exit code of 0 is never taken as success: only the gateway's record is (P6, P27).
    """
    ending = _infrastructure(facts, process) or _own_limits(facts, process) or _own_failure(facts, process)
    ending = ending or _what_it_left(facts)
    return Ending(ending.outcome, ending.reason[:_MAX_REASON])


def _infrastructure(facts: AttemptFacts, process: ProcessExit) -> Ending | None:
    if process.cause is ExitCause.CANCELLED:
        return Ending(Outcome.INFRA_ERROR, "the run was stopped")
    if process.cause in {ExitCause.START_FAILED, ExitCause.LOST}:
        word = "did not start" if process.cause is ExitCause.START_FAILED else "was lost"
        return Ending(Outcome.INFRA_ERROR, _with_message(f"the sandbox {word}", process))
    if facts.infra_failure:
        return Ending(Outcome.INFRA_ERROR, facts.infra_failure)
    if facts.requests == 0:
        return Ending(Outcome.INFRA_ERROR, _with_message("the gateway saw no request", process))
    return None


def _own_limits(facts: AttemptFacts, process: ProcessExit) -> Ending | None:
    if process.cause is ExitCause.MEMORY:
        return Ending(Outcome.AGENT_ERROR, "the agent ran out of its own memory")
    if process.cause is ExitCause.EXCESS:
        return Ending(Outcome.AGENT_ERROR, _with_message("the agent used more than it may", process))
    if facts.limit is not None:
        return Ending(_outcome_of(facts.limit), f"the budget of {facts.limit} was used up")
    if process.cause is ExitCause.DEADLINE:
        return Ending(Outcome.TIME_LIMIT, "the deadline passed")
    return None


def _own_failure(facts: AttemptFacts, process: ProcessExit) -> Ending | None:
    if process.cause is ExitCause.HUNG and facts.sent:
        return None  # its work was done: programs are known to hang after it (P25)
    if process.cause is ExitCause.HUNG:
        return Ending(Outcome.AGENT_ERROR, _with_message("the agent hung, and had sent no answer", process))
    if process.exit_code != 0:
        return Ending(Outcome.AGENT_ERROR, _with_message(_describe_exit(process.exit_code), process))
    if facts.turns == 0:
        return Ending(Outcome.AGENT_ERROR, _with_message("the agent ended without one answered model call", process))
    return None


def _what_it_left(facts: AttemptFacts) -> Ending:
    if not facts.answered:
        return Ending(Outcome.GAVE_UP, "the agent ended without an answer")
    if facts.tool_calls == 0:
        return Ending(Outcome.GAVE_UP, "the agent answered without one tool call")
    return Ending(Outcome.COMPLETED, "the agent answered")


def _outcome_of(limit: Limit) -> Outcome:
    match limit:
        case Limit.TURNS:
            return Outcome.TURN_LIMIT
        case Limit.CALLS | Limit.TOKENS | Limit.USD:
            return Outcome.BUDGET_LIMIT
        case Limit.TIME:
            return Outcome.TIME_LIMIT
    assert_never(limit)


def _describe_exit(code: int | None) -> str:
    if code is None:
        return "the agent ended without an exit code"
    if code < 0:
        return f"the agent was ended by signal {-code}"
    return f"the agent exited with code {code}"


def _with_message(reason: str, process: ProcessExit) -> str:
    return f"{reason}: {process.message}" if process.message else reason
