"""One record of what happened at the gateway; a trajectory is an attempt's events in order (M-A8, M-B1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum


class EventKind(StrEnum):
    """What happened."""

    ATTEMPT_OPENED = "attempt_opened"
    BRIEF_READ = "brief_read"
    MODEL_CALL = "model_call"
    TOOLS_LISTED = "tools_listed"
    TOOL_CALL = "tool_call"
    MCP_MESSAGE = "mcp_message"
    ANSWER = "answer"
    DENIED = "denied"
    ATTEMPT_ENDED = "attempt_ended"


class Status(StrEnum):
    """Whose doing the outcome of one event is (grading rule 8)."""

    OK = "ok"
    AGENT_ERROR = "agent_error"
    SERVER_ERROR = "server_error"
    INFRA_ERROR = "infra_error"
    DENIED = "denied"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of a trajectory; a row of the ``events`` table.

    Attributes:
        seq: position in the attempt, from 1, without gaps.
        ts: when it began.
        name: the model, the tool, or the JSON-RPC method; empty where none applies.
        status: whose doing the outcome is.
        error_class: machine word of the failure (``rate_limited``, ``unknown_tool``, ``-32602`` …); empty when ok.
        span_id: 16 hex digits, unique in the run.
        trace_id: 32 hex digits, one per attempt.
        latency_us: true duration in microseconds, without `waited_us`.
        waited_us: microseconds spent waiting for an overloaded provider.
        retry: how many times the gateway itself repeated the request.
        request_digest: SHA-256 of the request's body in the blobs (canonical JSON for tool arguments); empty if none.
        request_bytes: size of that body.
        request_preview: at most `digests.PREVIEW_BYTES` of it.
        result_digest: as for the request.
        result_bytes: as for the request.
        result_preview: as for the request.
        input_tokens: as the provider counted them; 0 where none.
        output_tokens: as above.
        cache_read_tokens: as above.
        cache_write_tokens: as above.
        usd: price of the event; None where the model has no price.
    """

    seq: int
    ts: datetime
    kind: EventKind
    status: Status = Status.OK
    name: str = ""
    error_class: str = ""
    span_id: str
    trace_id: str
    latency_us: int = 0
    waited_us: int = 0
    retry: int = 0
    request_digest: str = ""
    request_bytes: int = 0
    request_preview: str = ""
    result_digest: str = ""
    result_bytes: int = 0
    result_preview: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    usd: Decimal | None = None
