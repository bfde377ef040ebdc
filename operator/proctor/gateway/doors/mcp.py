"""/mcp: MCP's streamable HTTP, for agents that speak it; the same tools, policy and record as the plain door.

Messages are passed on as they came. What the gateway answers itself: the handshake's session, the list of tools as it
was pinned, refusals, and what it declines.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlsplit

from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from proctor.adapters.mcp.channel import Failed
from proctor.adapters.mcp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    InvalidMessage,
    JsonObject,
    MessageId,
    Notification,
    Request,
    RpcError,
    RpcResult,
    build_error,
    encode,
    parse_json,
    read_message,
    splice_result,
)
from proctor.adapters.mcp.session import Reply
from proctor.core.gatewaypolicy.refusal import RefusalCode, Refused
from proctor.gateway.agent_session import AgentSession, Outbox
from proctor.gateway.doors.tools import MAX_ARGUMENT_BYTES, toolbox_of
from proctor.gateway.requests import attempt_of, read_agent_body
from proctor.gateway.toolbox import Toolbox, describe_failure

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions that begin with `initialize`; a client of a later one is told so and falls back."""
UNSUPPORTED_VERSION = -32022

RELAYED_METHODS = frozenset(
    {
        "ping",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "logging/setLevel",
    }
)
"""A closed list: an extension's method might call a tool past the allow-list."""

_SESSION_HEADER, _VERSION_HEADER = "mcp-session-id", "mcp-protocol-version"
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
_SSE_HEADERS = {"cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}


async def post(http: HttpRequest) -> Response:
    """Take one message of the agent."""
    toolbox = toolbox_of(http)
    _check_origin(http)
    _check_types(http)
    body = await read_agent_body(http, MAX_ARGUMENT_BYTES)
    try:
        value = parse_json(body)
        message = read_message(value)
    except InvalidMessage as e:
        _deny(http, RefusalCode.MALFORMED, str(e))
        return _render(encode(build_error(e.id, e.code, str(e))), status=400)
    if isinstance(message, Request) and message.method == "initialize":
        return await _initialize(toolbox, message)
    if isinstance(message, Request) and message.method == "server/discover":
        return _reject_version(http, message.id)
    session = _find_session(http, toolbox)
    if isinstance(session, Response):
        return session
    match message:
        case Request():
            return await _answer(http, toolbox, session, message)
        case Notification():
            _take_notification(session, message)
        case RpcResult() | RpcError():
            pass  # to a request that was never passed on
    return Response(status_code=202)


async def get(http: HttpRequest) -> Response:
    """Open the stream for what belongs to no request."""
    toolbox = toolbox_of(http)
    _check_origin(http)
    session = _find_session(http, toolbox)
    if isinstance(session, Response):
        return session
    if "last-event-id" in http.headers:
        return _refuse(http, "streams can't be resumed here: their events have no ids", status=400)
    if session.stream is not None:
        return _refuse(http, "this session has a stream already", status=409)
    outbox = session.open_stream()

    async def events() -> AsyncIterator[bytes]:
        try:
            yield b": open\n\n"
            async for event in outbox.events():
                yield event
        finally:
            session.stream = None

    return StreamingResponse(events(), media_type="text/event-stream", headers=_SSE_HEADERS)


async def delete(http: HttpRequest) -> Response:
    """End a session of the agent; the server's own lives on until the attempt ends."""
    toolbox = toolbox_of(http)
    session = _find_session(http, toolbox)
    if isinstance(session, Response):
        return session
    toolbox.agents.close(session.id)
    return Response(status_code=204)


async def _initialize(toolbox: Toolbox, request: Request) -> Response:
    version = request.params.get("protocolVersion")
    if not isinstance(version, str):
        return _render(encode(build_error(request.id, INVALID_PARAMS, '"protocolVersion" is not a string')))
    reply = await toolbox.initialize(request.params)
    if not isinstance(reply, RpcResult):
        return _render(_render_reply(request.id, reply))
    session = toolbox.agents.open(str(reply.result.get("protocolVersion", version)))
    answer = _without_tasks(reply.result)
    return _render(splice_result(request.id, encode(answer)), headers={_SESSION_HEADER: session.id})


def _without_tasks(greeting: JsonObject) -> JsonObject:
    """A capability that is declined must not be promised."""
    capabilities = greeting.get("capabilities")
    if not isinstance(capabilities, dict) or "tasks" not in capabilities:
        return greeting
    return {**greeting, "capabilities": {name: value for name, value in capabilities.items() if name != "tasks"}}


def _reject_version(http: HttpRequest, id_: MessageId) -> Response:
    requested = http.headers.get(_VERSION_HEADER, "")
    details = {"supported": list(HANDSHAKE_VERSIONS), "requested": requested}
    text = "this gateway speaks the revisions of MCP that begin with initialize"
    return _render(encode(build_error(id_, UNSUPPORTED_VERSION, text, details)), status=400)


def _find_session(http: HttpRequest, toolbox: Toolbox) -> AgentSession | Response:
    id_ = http.headers.get(_SESSION_HEADER)
    if id_ is None:
        return _refuse(http, "Mcp-Session-Id is missing: initialize first", status=400)
    session = toolbox.agents.find(id_)
    if session is None:
        return _refuse(http, "there is no such session", status=404)
    version = http.headers.get(_VERSION_HEADER)
    if version is not None and version not in HANDSHAKE_VERSIONS:
        return _refuse(http, f"this session speaks {session.version}", status=400)
    return session


async def _answer(http: HttpRequest, toolbox: Toolbox, session: AgentSession, request: Request) -> Response:
    """Answer with plain JSON, or, if a notification comes first, with a stream that ends with the answer."""
    if request.id in session.calls:
        return _refuse(http, "a request with this id is open", status=400)
    outbox = Outbox()

    async def run() -> None:
        answer: bytes | None = None
        try:
            answer = await _dispatch(http, toolbox, request, outbox)
        except Refused as e:
            attempt_of(http).deny(e, name=request.method)
            answer = encode(build_error(request.id, _REFUSED, str(e), {"type": e.code}))
        except asyncio.CancelledError:
            answer = encode(build_error(request.id, _CANCELLED, "the request was cancelled"))
            raise
        finally:
            session.calls.pop(request.id, None)
            outbox.finish(answer or encode(build_error(request.id, INTERNAL_ERROR, "the gateway failed")))

    session.calls[request.id] = task = asyncio.create_task(run())
    try:
        await outbox.wait()
    except asyncio.CancelledError:
        task.cancel()
        raise
    if outbox.untouched and outbox.answer is not None:
        return _render(outbox.answer)
    return StreamingResponse(outbox.events(), media_type="text/event-stream", headers=_SSE_HEADERS)


_REFUSED = -32000
_CANCELLED = -32800
"""What the SDK answers with; the client has stopped listening anyhow, but its HTTP exchange must end."""


async def _dispatch(http: HttpRequest, toolbox: Toolbox, request: Request, outbox: Outbox) -> bytes:
    if request.method == "tools/call":
        return await _call_tool(http, toolbox, request, outbox)
    if request.method == "tools/list":
        return await _list_tools(toolbox, request)
    if request.method in RELAYED_METHODS:
        reply = await toolbox.relay(request.method, request.params, sink=outbox.notify)
        return _render_reply(request.id, reply)
    text = f"{request.method} is not passed on"
    _deny(http, RefusalCode.METHOD, text)
    return encode(build_error(request.id, METHOD_NOT_FOUND, text))


async def _list_tools(toolbox: Toolbox, request: Request) -> bytes:
    if request.params.get("cursor") is not None:
        return encode(build_error(request.id, INVALID_PARAMS, "no such cursor: the list has one page"))
    listing = await toolbox.list_tools()
    return splice_result(request.id, encode({"tools": list(listing.tools)}))


async def _call_tool(http: HttpRequest, toolbox: Toolbox, request: Request, outbox: Outbox) -> bytes:
    extra = dict(request.params)
    name, arguments = extra.pop("name", None), extra.pop("arguments", None)
    try:
        if not isinstance(name, str) or not isinstance(arguments, dict | None):
            return _reject_call(toolbox, request, '"name" is no string, or "arguments" no object')
        if "task" in extra:
            return _reject_call(toolbox, request, "tasks are not passed on: call the tool directly")
        reply = await toolbox.call(name, arguments or {}, extra=extra, sink=outbox.notify)
    except Refused as e:
        if e.code is not RefusalCode.TOOL:  # the toolbox has recorded that one, with the arguments
            attempt_of(http).deny(e, name=str(name))
        return _render_refused(request.id, e)
    if reply.error is not None:
        return _render_reply(request.id, reply.error)
    return splice_result(request.id, reply.result)


def _reject_call(toolbox: Toolbox, request: Request, problem: str) -> bytes:
    toolbox.reject_call(request.params)
    return encode(build_error(request.id, INVALID_PARAMS, problem))


def _render_refused(id_: MessageId, refused: Refused) -> bytes:
    """A tool that isn't there is a protocol error; a budget is told where the model reads it."""
    if refused.code is RefusalCode.TOOL:
        return encode(build_error(id_, INVALID_PARAMS, str(refused), {"type": refused.code}))
    result: JsonObject = {"content": [{"type": "text", "text": str(refused)}], "isError": True}
    return splice_result(id_, encode({**result, "_meta": {"proctor/refusal": refused.code}}))


def _take_notification(session: AgentSession, message: Notification) -> None:
    if message.method == "notifications/cancelled":
        id_ = message.params.get("requestId")
        if isinstance(id_, str | int):
            session.cancel(id_)
    # Every other one is about what was declined, or was said by the gateway in its own handshake.


def _render_reply(id_: MessageId, reply: Reply) -> bytes:
    match reply:
        case RpcResult(result=result):
            return splice_result(id_, encode(result))
        case RpcError(code=code, message=message, data=details):
            return encode(build_error(id_, code, message, details))
        case Failed():
            return encode(build_error(id_, INTERNAL_ERROR, describe_failure(reply), {"fault": reply.fault}))


def _check_origin(http: HttpRequest) -> None:
    """A browser's page must not reach an agent's tools by a name that was bent to this address."""
    origin = http.headers.get("origin")
    if origin is not None and urlsplit(origin).hostname not in _LOCAL_HOSTS:
        raise Refused(RefusalCode.HOST, "requests of other origins are refused", status=403)


def _check_types(http: HttpRequest) -> None:
    if not _has_type(http.headers, "content-type", ("application/json",)):
        raise Refused(RefusalCode.MALFORMED, "Content-Type is not application/json", status=415)
    if "accept" in http.headers and not _has_type(
        http.headers, "accept", ("application/json", "application/*", "text/event-stream", "*/*")
    ):
        raise Refused(RefusalCode.MALFORMED, "Accept has neither application/json nor text/event-stream", status=406)


def _has_type(headers: Mapping[str, str], name: str, types: tuple[str, ...]) -> bool:
    given = {part.split(";")[0].strip().lower() for part in headers.get(name, "").split(",")}
    return any(type_ in given for type_ in types)


def _refuse(http: HttpRequest, text: str, *, status: int) -> Response:
    _deny(http, RefusalCode.MALFORMED, text)
    return _render(encode(build_error(None, INVALID_REQUEST, text)), status=status)


def _deny(http: HttpRequest, code: RefusalCode, text: str) -> None:
    attempt_of(http).deny(Refused(code, text, status=400), name=f"{http.method} /mcp")


def _render(body: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(body, status_code=status, media_type="application/json", headers=headers)


routes: list[BaseRoute] = [
    Route("/mcp", post, methods=["POST"]),
    Route("/mcp", get, methods=["GET"]),
    Route("/mcp", delete, methods=["DELETE"]),
]
"""The door."""
