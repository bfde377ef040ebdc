"""POST /v1/messages: the Anthropic Messages API, for the one model that an attempt may call."""

from __future__ import annotations

import json
from typing import assert_never

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from proctor.adapters.models.messages_client import ModelRequest
from proctor.core.digests import canonical_json
from proctor.core.gatewaypolicy.bodies import check_body, rewrite_body
from proctor.core.gatewaypolicy.headers import select_betas, select_version
from proctor.core.gatewaypolicy.pricing import Usage
from proctor.core.gatewaypolicy.refusal import RefusalCode, Refused
from proctor.core.gatewaypolicy.sse import render_stream
from proctor.core.gatewaypolicy.strict_json import parse_object
from proctor.core.trajectory.events import EventKind
from proctor.gateway.attempt import Attempt
from proctor.gateway.context import GatewayContext
from proctor.gateway.model_call import LiveReply, ModelCall, refuse_unavailable
from proctor.gateway.model_side import ProviderSide, ScriptedSide
from proctor.gateway.ports import JsonObject
from proctor.gateway.requests import attempt_of, read_agent_body

MAX_REQUEST_BYTES = 16 * 1024 * 1024
"""More than any model's context holds, and little enough to read while other attempts wait."""

_QUERIES = {"": False, "beta=true": True}
"""The queries that are passed on, and whether they name the API's beta side."""

_EVENT_STREAM = "text/event-stream"


def build_routes(context: GatewayContext) -> list[BaseRoute]:
    """Return the doors."""
    door = _MessagesDoor(context)
    return [Route("/v1/messages", door.create_message, methods=["POST"]), Route("/", _greet, methods=["HEAD"])]


class _MessagesDoor:
    def __init__(self, context: GatewayContext) -> None:
        self._context = context

    async def create_message(self, request: Request) -> Response:
        """Answer one model call."""
        attempt = attempt_of(request)
        raw = await read_agent_body(request, MAX_REQUEST_BYTES)
        try:
            body = parse_object(raw)
            check_body(body, model=attempt.model.name)
            match attempt.model:
                case ScriptedSide():
                    attempt.take_turn()
                    return _answer_scripted(attempt, attempt.model, body)
                case ProviderSide():
                    call = self._prepare(request, attempt, attempt.model, body)
                case _:
                    assert_never(attempt.model)
        except Refused as refused:
            attempt.deny(refused, name="POST /v1/messages", request=raw)
            raise
        return await _answer(call)

    def _prepare(self, request: Request, attempt: Attempt, side: ProviderSide, body: JsonObject) -> ModelCall:
        beta_path = _QUERIES.get(request.url.query)
        if beta_path is None:
            raise Refused(RefusalCode.PATH, "the query is not passed on", status=403)
        betas = select_betas(request.scope["headers"])
        if attempt.infra_failure:
            raise refuse_unavailable(RefusalCode.PROVIDER_UNAVAILABLE, "the provider has failed this attempt for good")
        attempt.take_turn()
        passed = rewrite_body(body, most_output=attempt.budget.cap_output(body["max_tokens"]))
        # In the order in which the agent wrote it: the order of a schema's properties is part of what a model reads.
        sent = json.dumps(passed, separators=(",", ":")).encode()
        return ModelCall(
            attempt,
            side,
            ModelRequest(
                sent,
                version=select_version(request.scope["headers"]),
                betas=betas,
                beta_path=beta_path,
                stream=passed.get("stream") is True,
            ),
            record=canonical_json(passed),
            patience=self._context.patience,
            clock=self._context.clock,
        )


class _LiveResponse(StreamingResponse):
    """A stream that lets go of the provider however it ends, even if the agent left before its first piece."""

    def __init__(self, call: ModelCall, reply: LiveReply) -> None:
        headers = {**reply.headers, "content-type": _EVENT_STREAM}
        super().__init__(reply.events, headers=headers)
        self._call = call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._call.finish()


async def _answer(call: ModelCall) -> Response:
    reply = await call.begin()
    if isinstance(reply, LiveReply):
        return _LiveResponse(call, reply)
    return Response(reply.body, status_code=reply.status, headers=dict(reply.headers))


def _answer_scripted(attempt: Attempt, side: ScriptedSide, body: JsonObject) -> Response:
    span = attempt.start()
    reply = side.play(body)
    usage = Usage.parse(reply.get("usage"))
    attempt.budget.charge(usage)
    attempt.note_reply(reply)
    attempt.record(
        kind=EventKind.MODEL_CALL,
        span=span,
        name=side.name,
        request=canonical_json(body),
        result=canonical_json(reply),
        usage=usage,
    )
    if body.get("stream") is True:
        # In one piece: there is nothing to wait for between its events.
        return Response(b"".join(render_stream(reply)), media_type=_EVENT_STREAM)
    return JSONResponse(reply)


async def _greet(_: Request) -> Response:
    """Answer `HEAD /`, with which some agents look whether anybody is there."""
    return Response(status_code=200)
