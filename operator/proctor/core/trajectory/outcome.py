"""How an attempt ended (grading rule 9; the manifest's section on outcomes)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from proctor.core.ids import AttemptKey


class Outcome(StrEnum):
    """How an attempt ended; only `INFRA_ERROR` is ever tried again."""

    COMPLETED = "completed"
    GAVE_UP = "gave_up"
    TURN_LIMIT = "turn_limit"
    BUDGET_LIMIT = "budget_limit"
    TIME_LIMIT = "time_limit"
    AGENT_ERROR = "agent_error"
    INFRA_ERROR = "infra_error"


class ExitCause(StrEnum):
    """What ended the agent's process, as its executor saw it."""

    EXITED = "exited"  # by itself; see exit_code
    DEADLINE = "deadline"  # killed at the cell's deadline
    HUNG = "hung"  # ended because nothing was seen of it for long
    MEMORY = "memory"  # its own memory limit
    EXCESS = "excess"  # another limit of its own: processes, files, output
    CANCELLED = "cancelled"  # the run was stopped
    START_FAILED = "start_failed"  # never ran: infrastructure
    LOST = "lost"  # node, pod or supervisor gone: infrastructure


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """How the agent's process ended.

    Attributes:
        cause: what ended it.
        exit_code: its code where it exited by itself; negative for a signal; None where it never ran.
        message: the last of its output, cut to 400 characters; shown to people, never parsed.
    """

    cause: ExitCause
    exit_code: int | None = None
    message: str = ""


class AnswerSource(StrEnum):
    """Where the final answer came from."""

    PUT = "put"  # sent to the gateway's /answer
    LAST_TEXT = "last_text"  # the last assistant text that ended its turn
    NONE = "none"


class Limit(StrEnum):
    """A budget that the gateway enforced."""

    TURNS = "turns"
    CALLS = "calls"
    TOKENS = "tokens"
    USD = "usd"
    TIME = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One ended attempt: a row of the ``attempts`` table, and what the gateway lists once the store has its rows.

    Attributes:
        key: run, cell and attempt.
        outcome: how it ended.
        reason: one line for people.
        opened: when its token began to hold.
        ended: when it was closed.
        requests: requests seen at any door but the control door; 0 means infrastructure failed.
        turns: model calls answered.
        tool_calls: tool calls passed on or answered with a tool error.
        agent_tool_errors: tool calls that failed by the agent's own mistake.
        server_tool_errors: tool calls that the server under test failed.
        infra_tool_errors: tool calls lost to infrastructure; in neither side of the error rate.
        denied: requests refused by policy.
        input_tokens: all input tokens, cache included.
        output_tokens: all output tokens.
        usd: price of the attempt; None where the model has no price.
        waited_us: microseconds spent waiting for an overloaded provider.
        limit: the budget that was hit; None if none was.
        answer_source: where the answer came from.
        answer_digest: SHA-256 of the answer in the blobs; empty without one.
        tools_digest: digest of the tool list that the agent was served; empty if it never asked.
        trajectory_digest: SHA-256 over the digests of its events, in order (P30).
        events: how many events were recorded.
    """

    key: AttemptKey
    outcome: Outcome
    reason: str
    opened: datetime
    ended: datetime
    requests: int
    turns: int
    tool_calls: int
    agent_tool_errors: int
    server_tool_errors: int
    infra_tool_errors: int
    denied: int
    input_tokens: int
    output_tokens: int
    usd: Decimal | None
    waited_us: int
    limit: Limit | None
    answer_source: AnswerSource
    answer_digest: str
    tools_digest: str
    trajectory_digest: str
    events: int
