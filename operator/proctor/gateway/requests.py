"""What every door does with a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from proctor.core.gatewaypolicy.refusal import RefusalCode, Refused

if TYPE_CHECKING:
    from proctor.gateway.attempt import Attempt

_NO_RETRY = {"x-should-retry": "false"}
"""The provider's own clients take 429 and 5xx for overload and try again, unless they are told not to."""

_CLOSE = {"connection": "close"}
"""Sent with a refusal whose request body may be unread: its rest must not be taken for another request."""


def attempt_of(request: Request) -> Attempt:
    """Return the attempt that the guard let through."""
    return cast("Attempt", request.state.attempt)


async def read_body(request: Request, limit: int) -> bytes:
    """Read a request's body; more than the limit is never held in memory.

    Raises:
        Refused: it is larger, or was cut.
    """
    chunks: list[bytes] = []
    size = 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > limit:
                raise Refused(RefusalCode.TOO_LARGE, f"the body is larger than {limit} bytes", status=413)
            chunks.append(chunk)
    except ClientDisconnect as error:
        raise Refused(RefusalCode.MALFORMED, "the body was cut", status=400) from error
    return b"".join(chunks)


async def read_agent_body(request: Request, limit: int) -> bytes:
    """Read the body of an attempt's request.

    Raises:
        Refused: it is larger, was cut, or tells the attempt's token.
    """
    body = await read_body(request, limit)
    attempt_of(request).check_untold(body)
    return body


def render_refusal(refused: Refused) -> Response:
    """Return the response that tells a refusal, in the form of the Messages API's errors."""
    body = {"type": "error", "error": {"type": refused.code.value, "message": str(refused)}}
    return JSONResponse(body, status_code=refused.status, headers=_NO_RETRY | _CLOSE)
