"""Who may knock: form, source and token of a request are checked before any door sees it (S15, S16)."""

from __future__ import annotations

import asyncio
import hmac
import logging
from contextlib import nullcontext

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from proctor.core.gatewaypolicy.refusal import RefusalCode, Refused
from proctor.core.gatewaypolicy.tokens import PresentedToken, verify_token
from proctor.core.gatewaypolicy.wire import check_request, find_credential
from proctor.gateway.attempt import Attempt
from proctor.gateway.attempts import Attempts
from proctor.gateway.context import GatewayContext
from proctor.gateway.protocol import CONTROL_SOURCE, TCP_SOURCE
from proctor.gateway.requests import render_refusal

logger = logging.getLogger(__name__)

MAX_REQUESTS = 10_000
"""Of one attempt: each is an event at least, and a loop of them must not fill the store."""

HEALTH_PATH = "/healthz"
_CONTROL_PREFIX = "/runs/"


class Guard:
    """The application that every socket leads to; it hands on to the control doors or to an attempt's doors.

    Args:
        context: the parts of the gateway.
        attempts: the attempts of the run.
        control: the control doors.
        cell: an attempt's doors.
    """

    def __init__(self, context: GatewayContext, attempts: Attempts, *, control: ASGIApp, cell: ASGIApp) -> None:
        self._context = context
        self._attempts = attempts
        self._control = control
        self._cell = cell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            await self._answer(scope, receive, send)
        except asyncio.CancelledError:
            # Its socket was closed under the request: there is nobody left to answer, and nothing is wrong.
            logger.debug("request cut by the end of its socket")

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        source: str = scope["state"]["source"]
        if source == TCP_SOURCE and (scope["method"], scope["path"]) == ("GET", HEALTH_PATH):
            # A kubelet has neither a token nor a name for us; that this process answers is all it learns.
            await PlainTextResponse("ok\n")(scope, receive, send)
            return
        to_control = source == CONTROL_SOURCE or (source == TCP_SOURCE and scope["path"].startswith(_CONTROL_PREFIX))
        attempt = self._attempts.find(source)
        try:
            check_request(scope["raw_path"], scope["headers"], host_names=self._context.host_names)
            if to_control:
                self._admit_operator(scope)
            else:
                attempt = self._admit_attempt(scope, attempt)
        except Refused as refused:
            self._note(refused, scope, attempt)
            await render_refusal(refused)(scope, receive, send)
            return
        if to_control:
            await self._control(scope, receive, send)
        elif attempt is not None:
            attempt.requests += 1
            scope["state"]["attempt"] = attempt
            with nullcontext() if _waits_for_news(scope) else attempt.working():
                await self._cell(scope, receive, send)

    def _admit_operator(self, scope: Scope) -> None:
        given = find_credential(scope["headers"]).encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, self._context.operator_token.encode()):
            raise Refused(RefusalCode.TOKEN, "the token is not the operator's", status=401)

    def _admit_attempt(self, scope: Scope, attempt: Attempt | None) -> Attempt:
        token = PresentedToken.parse(find_credential(scope["headers"]))
        source: str = scope["state"]["source"]
        if source == TCP_SOURCE:
            attempt = self._attempts.find(token.opaque_id)
            source = f"{TCP_SOURCE}:{(scope['client'] or ('',))[0]}"
        if attempt is None:
            raise Refused(RefusalCode.ENDED, "no such attempt is open", status=401)
        verify_token(self._context.run_key, token, attempt.spec.claims, now=self._context.clock())
        # Bound only once it is proven: a stranger who guesses an id must not be able to lock the attempt out.
        if attempt.source is None:
            attempt.bind(source)
        if attempt.source != source:
            refused = Refused(RefusalCode.SOURCE, "the token belongs to another source", status=401)
            attempt.deny(refused, name=f"{scope['method']} {scope['path']}")
            raise refused
        attempt.check_untold(scope["raw_path"] + scope["query_string"])
        if attempt.requests >= MAX_REQUESTS:
            raise Refused(RefusalCode.REQUESTS, "more requests than any investigation needs", status=429)
        return attempt

    def _note(self, refused: Refused, scope: Scope, attempt: Attempt | None) -> None:
        door = f"{scope['method']} {scope['path']}"
        if attempt is not None:
            attempt.deny(refused, name=door)
        logger.info("request refused", extra={"code": refused.code, "status": refused.status})


def _waits_for_news(scope: Scope) -> bool:
    """Tell whether a request is a stream that stays open beside all others: that one is open is no sign of life."""
    return (scope["method"], scope["path"]) == ("GET", "/mcp")
