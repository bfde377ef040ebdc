"""POST /v1/messages: the Anthropic Messages API, for the one model that an attempt may call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from proctor.core.digests import canonical_json
from proctor.core.gatewaypolicy.pricing import Usage
from proctor.core.gatewaypolicy.refusal import RefusalCode, Refused
from proctor.core.gatewaypolicy.sse import render_stream
from proctor.core.gatewaypolicy.strict_json import parse_object
from proctor.core.trajectory.events import EventKind
from proctor.gateway.attempt import Attempt
from proctor.gateway.model_side import ProviderSide, ScriptedSide
from proctor.gateway.ports import JsonObject
from proctor.gateway.requests import attempt_of, read_body

MAX_REQUEST_BYTES = 32 * 1024 * 1024
"""The provider's own limit on a request."""


async def create_message(request: Request) -> Response:
    """Answer one model call."""
    attempt = attempt_of(request)
    body = parse_object(await read_body(request, MAX_REQUEST_BYTES))
    if body.get("model") != attempt.model.name:
        raise Refused(RefusalCode.MODEL, "this attempt has one model, and it is another", status=403)
    match attempt.model:
        case ScriptedSide():
            return _answer_scripted(attempt, attempt.model, body)
        case ProviderSide():
            raise Refused(RefusalCode.PROVIDER_UNAVAILABLE, "no provider yet", status=503)
    assert_never(attempt.model)


def _answer_scripted(attempt: Attempt, side: ScriptedSide, body: JsonObject) -> Response:
    attempt.take_turn()
    span = attempt.start()
    reply = side.play(body)
    usage = Usage.parse(reply.get("usage"))
    attempt.budget.charge(usage)
    attempt.record(
        kind=EventKind.MODEL_CALL,
        span=span,
        name=side.name,
        request=canonical_json(body),
        result=canonical_json(reply),
        usage=usage,
    )
    note_text(attempt, reply)
    if body.get("stream") is True:
        return StreamingResponse(render_stream(reply), media_type="text/event-stream")
    return JSONResponse(reply)


def note_text(attempt: Attempt, reply: Mapping[str, Any]) -> None:
    """Keep the text of a reply that ended the model's turn."""
    if reply.get("stop_reason") == "end_turn":
        blocks = reply.get("content", [])
        attempt.note_last_text("".join(block.get("text", "") for block in blocks if block.get("type") == "text"))


async def greet(_: Request) -> Response:
    """Answer `HEAD /`, with which some agents look whether anybody is there."""
    return Response(status_code=200)


routes: list[BaseRoute] = [
    Route("/v1/messages", create_message, methods=["POST"]),
    Route("/", greet, methods=["HEAD"]),
]
