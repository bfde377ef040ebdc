"""Requests that the gateway refuses: each with a word of its own, so that none is mistaken for the provider's."""

from __future__ import annotations

from enum import StrEnum

from proctor.core.trajectory.outcome import Limit
from proctor.errors import InvalidInput


class RefusalCode(StrEnum):
    """Why a request was refused; the ``type`` of the error that the agent sees."""

    MALFORMED = "proctor_malformed_request"
    TOO_LARGE = "proctor_request_too_large"
    HOST = "proctor_host_refused"
    PATH = "proctor_path_refused"
    METHOD = "proctor_method_refused"
    TOKEN = "proctor_token_refused"  # noqa: S105 - a word, not a secret
    TOKEN_EXPIRED = "proctor_token_expired"  # noqa: S105 - as above
    TOKEN_TOLD = "proctor_token_told"  # noqa: S105 - as above
    SOURCE = "proctor_source_refused"
    ENDED = "proctor_attempt_ended"
    MODEL = "proctor_model_refused"
    HEADER = "proctor_header_refused"
    BODY = "proctor_body_refused"
    TOOL = "proctor_tool_refused"
    ANSWER = "proctor_answer_refused"
    REQUESTS = "proctor_too_many_requests"
    TURN_LIMIT = "proctor_turn_limit"
    CALL_LIMIT = "proctor_call_limit"
    TOKEN_LIMIT = "proctor_token_limit"  # noqa: S105 - as above
    USD_LIMIT = "proctor_usd_limit"
    TIME_LIMIT = "proctor_time_limit"
    KEY_REFUSED = "proctor_key_refused"
    PROVIDER_UNAVAILABLE = "proctor_provider_unavailable"
    INTERNAL = "proctor_internal_error"


class Refused(InvalidInput):
    """The request is refused.

    Args:
        code: the machine word.
        message: what is wrong, for people; never quotes a token, a key or a body.
        status: the HTTP status that says it.

    Attributes:
        recorded: whether the record already says so.
    """

    def __init__(self, code: RefusalCode, message: str, *, status: int) -> None:
        super().__init__(message)
        self.code = code
        self.recorded = False
        self.status = status


_LIMIT_CODES = {
    Limit.TURNS: RefusalCode.TURN_LIMIT,
    Limit.CALLS: RefusalCode.CALL_LIMIT,
    Limit.TOKENS: RefusalCode.TOKEN_LIMIT,
    Limit.USD: RefusalCode.USD_LIMIT,
    Limit.TIME: RefusalCode.TIME_LIMIT,
}


def refuse_over(limit: Limit) -> Refused:
    """Return the refusal for a budget that is used up."""
    return Refused(_LIMIT_CODES[limit], f"the budget of {limit} is used up: give your answer now", status=429)
