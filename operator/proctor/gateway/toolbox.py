"""An attempt's tools: one MCP session with the server under test, behind both doors, with one record (M-B1).

The policy is applied here, on the list and on the call, so that no door can forget it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from proctor.adapters.mcp.channel import Failed
from proctor.adapters.mcp.jsonrpc import INVALID_PARAMS, JsonObject, Notification, RpcError, RpcResult, encode
from proctor.adapters.mcp.session import NotificationSink, Reply
from proctor.core.digests import canonical_json, digest_bytes
from proctor.core.gatewaypolicy.refusal import RefusalCode, Refused
from proctor.core.gatewaypolicy.toolerrors import (
    ENGINE_LOST,
    OK,
    Blame,
    Fault,
    blame_fault,
    blame_result,
    blame_rpc_error,
)
from proctor.core.gatewaypolicy.toollist import ToolListing, describe_change
from proctor.core.gatewaypolicy.tools import CallCheck, check_call
from proctor.core.trajectory.events import EventKind, Status
from proctor.gateway.agent_session import AgentSessions
from proctor.gateway.attempt import Attempt
from proctor.gateway.recorder import Span
from proctor.gateway.upstream import Upstream, UpstreamHooks

MAX_RECORDED_NOTIFICATIONS = 200
"""Notifications of one attempt that become events; the rest are passed on and only counted."""

CANCELLED = Blame(Status.OK, "cancelled")
"""A call that the agent took back, or that its end cut off: neither side failed."""
MAX_OTHER_REQUESTS = 2000
"""Requests of one attempt that are no tool calls: each is an event, and a loop of them must not fill the store."""


@dataclass(frozen=True, slots=True)
class ToolReply:
    """What a tool call came to.

    Attributes:
        result: the tool's result as the agent sees it, serialised; where the server gave none, one that says why.
        is_error: whether the agent is told that it failed.
        complete: whether the server itself said all that `plain` promises.
        error: the server's JSON-RPC error, to be passed on as such where the door speaks JSON-RPC.
    """

    result: bytes
    is_error: bool
    complete: bool = True
    error: RpcError | None = None

    @property
    def plain(self) -> bytes:
        """The result with `content` and `isError` always there, for agents that don't know MCP."""
        if self.complete:
            return self.result
        result: JsonObject = json.loads(self.result)
        return encode({"content": [], "isError": self.is_error, **result})


class EngineSight(NamedTuple):
    """What is seen of a dataset's engine.

    Attributes:
        losses: tells how often it was not there for what was asked of it, so far.
        look: sees now whether it is there.
    """

    losses: Callable[[], int]
    look: Callable[[], Awaitable[None]]


async def _see_nothing() -> None:
    """Nothing is watched."""


class Toolbox:
    """The tools of one attempt.

    Args:
        attempt: whose tools these are.
        upstream: the connection to the server under test.
        pinned: the list that Preflight saw; None pins the first one that is seen.
        error_field: the suite's `errorField` for this server.
        engine: what is seen of the dataset's engine.
    """

    def __init__(
        self,
        attempt: Attempt,
        upstream: Upstream,
        *,
        pinned: ToolListing | None = None,
        error_field: str | None = None,
        engine: EngineSight | None = None,
    ) -> None:
        self._attempt = attempt
        self._upstream = upstream
        self._pinned = pinned
        self._error_field = error_field
        self._engine = engine or EngineSight(lambda: 0, _see_nothing)
        self._calls: dict[tuple[str, str], int] = {}
        self._notifications = 0
        self._others = 0
        self._served = False
        self._closing = False
        self.agents = AgentSessions()
        upstream.hooks = UpstreamHooks(
            check_tools=self._check_tools, on_notification=self._take_notification, on_declined=self._note_declined
        )

    def prestart(self) -> None:
        """Start the server's process now, beside the agent's own start: its imports take seconds."""
        self._upstream.prestart()

    async def close(self) -> None:
        """End the session and everything that the server started."""
        self._closing = True
        self.agents.close_all()
        await self._upstream.close()

    async def initialize(self, params: JsonObject) -> Reply:
        """Shake hands on behalf of an agent that speaks MCP; the server's own answer."""
        return await self._upstream.initialize(params)

    async def list_tools(self) -> ToolListing:
        """Return the tools that the agent may use.

        Raises:
            Refused: the server gives no list that may be served, or there were too many requests.
        """
        self._take_other()
        span = self._attempt.start()
        failed = await self._ready()
        if failed is None and self._pinned is not None:
            self._attempt.tools_digest = self._pinned.digest
            result = encode(list(self._pinned.tools))
            self._attempt.record(kind=EventKind.TOOLS_LISTED, span=span, name="tools/list", result=result)
            return self._pinned
        failed = failed or Failed(Fault.EXITED, "the server gave no list of tools")
        blame = blame_fault(failed.fault, failed.http_status)
        self._attempt.record(
            kind=EventKind.TOOLS_LISTED,
            span=span,
            name="tools/list",
            status=blame.status,
            error_class=blame.error_class,
            result=failed.detail.encode(),
        )
        raise Refused(RefusalCode.TOOL, f"no tools: {failed.detail}", status=502)

    async def call(
        self,
        name: str,
        arguments: JsonObject,
        *,
        extra: JsonObject | None = None,
        sink: NotificationSink | None = None,
    ) -> ToolReply:
        """Call a tool.

        Args:
            name: the tool.
            arguments: its arguments.
            extra: further members of the call's params, such as `_meta`.
            sink: takes notifications that belong to this call.

        Raises:
            Refused: the policy or a budget forbids it.
        """
        span = self._attempt.start()
        request = canonical_json(arguments)
        failed = await self._ready()
        check = self._check(name)
        if check is CallCheck.DENIED:
            refused = Refused(RefusalCode.TOOL, f"tool {name!r} is not among the tools of this cell", status=403)
            self._attempt.deny(refused, name=name, span=span, request=request)
            raise refused
        self._attempt.take_call()
        if check is CallCheck.UNKNOWN:
            return self._answer_unknown(name, span, request)
        losses = self._engine.losses()
        params: JsonObject = {**(extra or {}), "name": name, "arguments": arguments}
        try:
            reply = failed or await self._upstream.request("tools/call", params, sink=self._recorded(sink))
            engine_lost = await self._is_engine_lost(reply, losses)
        except asyncio.CancelledError:
            self._record_call(name, span, request, blame=CANCELLED, result=b"")
            raise
        blame, answer = self._judge(reply, engine_lost=engine_lost)
        if blame == ENGINE_LOST:
            # What the agent concludes without that result says nothing about it or its server: another attempt.
            lost = "the dataset's engine was lost during a tool call"
            self._attempt.infra_failure = self._attempt.infra_failure or lost
        self._record_call(name, span, request, blame=blame, result=answer.result)
        return answer

    async def relay(self, method: str, params: JsonObject, *, sink: NotificationSink | None = None) -> Reply:
        """Pass a request that is no tool call on to the server, and its answer back.

        Raises:
            Refused: there were too many.
        """
        self._take_other()
        span = self._attempt.start()
        failed = await self._ready()
        reply = failed or await self._upstream.request(method, params, sink=self._recorded(sink))
        blame, body = _describe(reply)
        self._attempt.record(
            kind=EventKind.MCP_MESSAGE,
            span=span,
            name=method,
            status=blame.status,
            error_class=blame.error_class,
            request=canonical_json(params),
            result=body,
        )
        return reply

    def reject_call(self, params: JsonObject) -> None:
        """Record a tool call that names no tool or has no arguments: the agent's mistake, which no server sees.

        Raises:
            Refused: a budget forbids even that.
        """
        self._attempt.take_call()
        self._attempt.record(
            kind=EventKind.TOOL_CALL,
            status=Status.AGENT_ERROR,
            error_class=str(INVALID_PARAMS),
            request=canonical_json(params),
        )

    async def _ready(self) -> Failed | None:
        failed = await self._upstream.ready()
        if failed is not None and not self._served and not self._closing:
            # An agent without any tools isn't measured; the server passed Preflight, so another attempt is worth it.
            self._attempt.infra_failure = self._attempt.infra_failure or f"no tools: {failed.detail}"
        return failed

    def _check(self, name: str) -> CallCheck:
        if self._pinned is None:
            # The server has never listed its tools, so there is no session to pass a call on to either.
            return CallCheck.PASS
        return check_call(name, served=self._pinned.served_names, all_names=self._pinned.names)

    def _answer_unknown(self, name: str, span: Span, request: bytes) -> ToolReply:
        known = ", ".join(self._pinned.served_names) if self._pinned else ""
        answer = _tool_error(f"there is no tool {name!r}; the tools are: {known}")
        blame = Blame(Status.AGENT_ERROR, "unknown_tool")
        self._record_call(name, span, request, blame=blame, result=answer.result)
        return answer

    async def _is_engine_lost(self, reply: Reply, before: int) -> bool:
        """Tell whether the engine was away during a call; after one that failed, it is looked at once more."""
        if self._engine.losses() == before and self._judge(reply, engine_lost=False)[0] != OK:
            await self._engine.look()
        return self._engine.losses() > before

    def _judge(self, reply: Reply, *, engine_lost: bool) -> tuple[Blame, ToolReply]:
        match reply:
            case RpcResult(result=result):
                blame = blame_result(result, error_field=self._error_field, engine_lost=engine_lost)
                complete = "isError" in result and "content" in result
                return blame, ToolReply(encode(result), result.get("isError") is True, complete)
            case RpcError(code=code, message=message):
                return blame_rpc_error(code, engine_lost=engine_lost), _tool_error(message, reply)
            case Failed():
                return self._blame_failed(reply, engine_lost=engine_lost), _tool_error(describe_failure(reply))

    def _blame_failed(self, failed: Failed, *, engine_lost: bool) -> Blame:
        if self._closing:
            return CANCELLED  # the attempt ended under the call: nobody's failure
        if engine_lost:
            return ENGINE_LOST
        return blame_fault(failed.fault, failed.http_status)

    def _record_call(self, name: str, span: Span, request: bytes, *, blame: Blame, result: bytes) -> None:
        call = (name, digest_bytes(request))
        earlier = self._calls.get(call, 0)
        self._calls[call] = earlier + 1
        self._attempt.record(
            kind=EventKind.TOOL_CALL,
            span=span,
            name=name,
            status=blame.status,
            error_class=blame.error_class,
            retry=earlier,
            request=request,
            result=result,
        )

    def _check_tools(self, seen: ToolListing) -> str:
        """Compare the list of a fresh session with the pinned one; each process of the server must offer the same."""
        if self._pinned is None and not seen.error:
            self._pinned = seen
        change = describe_change(self._pinned, seen) if self._pinned is not None else seen.error
        if change:
            self._attempt.infra_failure = self._attempt.infra_failure or change
        self._served = self._served or not change
        return change

    def _take_notification(self, notification: Notification) -> None:
        self._record_notification(notification)
        self.agents.notify(notification)

    def _recorded(self, sink: NotificationSink | None) -> NotificationSink | None:
        if sink is None:
            return None

        def take(notification: Notification) -> None:
            self._record_notification(notification)
            sink(notification)

        return take

    def _record_notification(self, notification: Notification) -> None:
        self._notifications += 1
        if self._notifications <= MAX_RECORDED_NOTIFICATIONS:
            self._attempt.record(
                kind=EventKind.MCP_MESSAGE, name=notification.method, result=canonical_json(notification.params)
            )

    def _take_other(self) -> None:
        self._others += 1
        if self._others > MAX_OTHER_REQUESTS:
            raise Refused(RefusalCode.CALL_LIMIT, "too many requests that are no tool calls", status=429)

    def _note_declined(self, method: str) -> None:
        self._attempt.record(kind=EventKind.MCP_MESSAGE, name=method, status=Status.DENIED, error_class="declined")


def describe_failure(failed: Failed) -> str:
    """Return what an agent is told of a server's failure."""
    return f"tool failed: {failed.detail}"


def _tool_error(text: str, error: RpcError | None = None) -> ToolReply:
    return ToolReply(encode({"content": [{"type": "text", "text": text}], "isError": True}), is_error=True, error=error)


def _describe(reply: Reply) -> tuple[Blame, bytes]:
    match reply:
        case RpcResult(result=result):
            return OK, encode(result)
        case RpcError(code=code, message=message):
            return blame_rpc_error(code), encode({"code": code, "message": message})
        case Failed():
            return blame_fault(reply.fault, reply.http_status), reply.detail.encode()
