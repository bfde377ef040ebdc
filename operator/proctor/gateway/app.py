"""The application: an attempt's doors, the operator's doors, and the guard before both."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from proctor.core.gatewaypolicy.refusal import RefusalCode, Refused
from proctor.errors import InvalidInput, ProctorError
from proctor.gateway.attempts import Attempts
from proctor.gateway.context import GatewayContext
from proctor.gateway.doors import answer, brief, control, messages
from proctor.gateway.guard import Guard
from proctor.gateway.requests import attempt_of, render_refusal

logger = logging.getLogger(__name__)

_NOT_FOUND, _WRONG_METHOD = 404, 405


def build_app(context: GatewayContext, attempts: Attempts, *, tool_routes: Sequence[BaseRoute] = ()) -> ASGIApp:
    """Return the application that every socket leads to.

    Args:
        context: the parts of the gateway.
        attempts: the attempts of the run.
        tool_routes: the doors to the server under test.
    """
    cell = Starlette(
        routes=[*messages.build_routes(context), *brief.build_routes(context), *answer.routes, *tool_routes],
        exception_handlers={
            _NOT_FOUND: _refuse_cell,
            _WRONG_METHOD: _refuse_cell,
            Refused: _refuse_cell,
            Exception: _fail_cell,
        },
    )
    operator = Starlette(
        routes=control.build_routes(context, attempts),
        exception_handlers={
            _NOT_FOUND: _refuse_operator,
            _WRONG_METHOD: _refuse_operator,
            ProctorError: _refuse_operator,
        },
    )
    cell.router.redirect_slashes = operator.router.redirect_slashes = False
    return Guard(context, attempts, control=operator, cell=cell)


async def _refuse_cell(request: Request, error: Exception) -> Response:
    refused = _as_refusal(error)
    attempt_of(request).deny(refused, name=f"{request.method} {request.url.path}")
    return render_refusal(refused)


async def _refuse_operator(_: Request, error: Exception) -> Response:
    return render_refusal(_as_refusal(error))


async def _fail_cell(request: Request, _: Exception) -> Response:
    attempt = attempt_of(request)
    logger.error("a door failed", extra={"attempt": attempt.key.opaque_id})
    refused = Refused(RefusalCode.INTERNAL, "the gateway failed", status=500)
    attempt.deny(refused, name=f"{request.method} {request.url.path}")
    return render_refusal(refused)


def _as_refusal(error: Exception) -> Refused:
    if isinstance(error, Refused):
        return error
    if isinstance(error, HTTPException) and error.status_code == _WRONG_METHOD:
        return Refused(RefusalCode.METHOD, "the door does not take this method", status=405)
    if isinstance(error, HTTPException):
        return Refused(RefusalCode.PATH, "there is no such door", status=403)
    if isinstance(error, InvalidInput):
        return Refused(RefusalCode.MALFORMED, str(error), status=400)
    return Refused(RefusalCode.INTERNAL, str(error), status=503)
