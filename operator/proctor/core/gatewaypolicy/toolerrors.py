"""Whose doing a failed tool call is, decided from structured facts alone (grading rule 8).

Never from words: a result that says "503" is about the incident, not about the transport.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from proctor.core.trajectory.events import Status


class Fault(StrEnum):
    """How the connection to a server under test failed."""

    START_FAILED = "start_failed"  # its command could not be run
    NOT_LAUNCHED = "not_launched"  # the sandbox for its command could not be made
    EXITED = "exited"  # its process or connection ended
    TIMEOUT = "timeout"  # no answer within the limit
    INVALID_MESSAGE = "invalid_message"  # bytes that are no JSON-RPC
    RESULT_TOO_LARGE = "result_too_large"
    FLOOD = "flood"  # notifications or stray output without end
    SESSION_LOST = "session_lost"  # an HTTP server forgot the session
    HTTP_STATUS = "http_status"  # an HTTP answer that is no JSON-RPC; the status tells whose
    UNREACHABLE = "unreachable"  # no connection to a server that runs elsewhere
    TOOLS_CHANGED = "tools_changed"  # its list of tools differs from the one pinned in Preflight


@dataclass(frozen=True, slots=True)
class Blame:
    """The outcome of one call as the record has it.

    Attributes:
        status: whose doing.
        error_class: machine word; empty when ok.
    """

    status: Status
    error_class: str = ""


OK = Blame(Status.OK)
ENGINE_LOST = Blame(Status.INFRA_ERROR, "engine_unreachable")
"""The dataset's engine was away: nothing that is being judged."""

_OVERLOADED_OR_IN_BETWEEN = frozenset({429, 502, 503, 504})
"""What proxies and rate limiters answer: the call never had its chance, so it is in neither side of the error rate."""
_CREDENTIALS = frozenset({401, 403, 407})
"""The headers are the suite's, not the agent's."""
_CONTENT_TOO_LARGE = 413

_RESOURCE_NOT_FOUND = -32002
_AGENT_CODES = frozenset({-32601, -32602, _RESOURCE_NOT_FOUND})
"""Unknown method, invalid params, unknown resource: what was asked for is wrong."""


def blame_rpc_error(code: int, *, engine_lost: bool = False) -> Blame:
    """Decide by the code of a JSON-RPC error."""
    if code in _AGENT_CODES:
        return Blame(Status.AGENT_ERROR, str(code))
    if engine_lost:
        return ENGINE_LOST
    return Blame(Status.SERVER_ERROR, str(code))


def blame_http_status(status: int) -> Blame:
    """Decide by the status of an HTTP answer without JSON-RPC in it."""
    word = f"http_{status}"
    if status in _OVERLOADED_OR_IN_BETWEEN or status in _CREDENTIALS:
        return Blame(Status.INFRA_ERROR, word)
    if status == _CONTENT_TOO_LARGE:
        return Blame(Status.AGENT_ERROR, word)
    return Blame(Status.SERVER_ERROR, word)


def blame_fault(fault: Fault, http_status: int | None = None) -> Blame:
    """Decide by how the connection failed."""
    match fault:
        case Fault.HTTP_STATUS:
            return blame_http_status(http_status or 0)
        case Fault.UNREACHABLE | Fault.TOOLS_CHANGED | Fault.NOT_LAUNCHED:
            return Blame(Status.INFRA_ERROR, fault)
        case (
            Fault.START_FAILED
            | Fault.EXITED
            | Fault.TIMEOUT
            | Fault.INVALID_MESSAGE
            | Fault.RESULT_TOO_LARGE
            | Fault.FLOOD
            | Fault.SESSION_LOST
        ):
            return Blame(Status.SERVER_ERROR, fault)
        case _:
            assert_never(fault)


def blame_result(result: Mapping[str, object], *, error_field: str | None = None, engine_lost: bool = False) -> Blame:
    """Decide by a tool's result.

    Args:
        result: the result of `tools/call`.
        error_field: key of a JSON result object that makes it an error, as the suite says for this server.
        engine_lost: whether the way to the dataset's engine refused a connection during the call.

    Returns:
        OK; or the agent's mistake, unless the engine was away.
    """
    if result.get("isError") is True:
        word = "tool_error"
    elif error_field is not None and _has_error_field(result, error_field):
        word = "error_field"
    else:
        return OK
    if engine_lost:
        return ENGINE_LOST
    return Blame(Status.AGENT_ERROR, word)


def _has_error_field(result: Mapping[str, object], error_field: str) -> bool:
    if _names_error(result.get("structuredContent"), error_field):
        return True
    content = result.get("content")
    if not isinstance(content, list):
        return False
    return any(_text_names_error(item, error_field) for item in content)


def _text_names_error(item: object, error_field: str) -> bool:
    if not isinstance(item, dict) or not isinstance(item.get("text"), str):
        return False
    text: str = item["text"]
    # Cheap looks first: most results are large and have no such key.
    if text.lstrip()[:1] != "{" or json.dumps(error_field) not in text:
        return False
    try:
        return _names_error(json.loads(text), error_field)
    except (ValueError, RecursionError):
        return False


def _names_error(value: object, error_field: str) -> bool:
    """`{"error": null}` is how many servers say that there was none."""
    return isinstance(value, dict) and value.get(error_field) not in (None, "", False)
