"""One MCP session with a server under test: requests matched with answers, notifications passed on."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TypeAlias

from proctor.adapters.mcp.channel import Channel, Failed
from proctor.adapters.mcp.jsonrpc import (
    METHOD_NOT_FOUND,
    JsonObject,
    Message,
    MessageId,
    Notification,
    Request,
    RpcError,
    RpcResult,
    build_error,
    build_notification,
    build_request,
    build_result,
)
from proctor.adapters.mcp.limits import McpLimits
from proctor.core.gatewaypolicy.toolerrors import Fault

Reply: TypeAlias = RpcResult | RpcError | Failed
NotificationSink: TypeAlias = Callable[[Notification], None]

DECLINED_METHODS = {
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
    "roots/list": "roots",
}
"""What a server may ask of a client, and doesn't get: the agent's model is not the server's to use, nobody is there to
be asked, and an agent in a sandbox has no files to offer."""

_ENDS_SESSION = frozenset({Fault.EXITED, Fault.SESSION_LOST, Fault.FLOOD})
"""Failures of one request after which the next one needs a fresh session."""


@dataclass(slots=True)
class _Pending:
    answer: asyncio.Future[Reply]
    progress_token: str | int | None
    sink: NotificationSink | None


class UpstreamSession:
    """A session; it lives as long as its channel.

    Args:
        channel: the connection, not yet started.
        limits: its bounds.
        on_notification: takes notifications that belong to no request in particular.
        on_declined: takes the method of each request by the server that was declined.
    """

    def __init__(
        self,
        channel: Channel,
        limits: McpLimits,
        *,
        on_notification: NotificationSink,
        on_declined: Callable[[str], None],
    ) -> None:
        self._channel = channel
        self._limits = limits
        self._on_notification = on_notification
        self._on_declined = on_declined
        self._ids = itertools.count(1)
        self._pending: dict[MessageId, _Pending] = {}
        self._closed: Failed | None = None
        self._replies: set[asyncio.Task[None]] = set()
        self._retired = False
        channel.start(self)

    @property
    def failure(self) -> Failed | None:
        """How the connection ended; None while it is open."""
        return self._closed

    @property
    def usable(self) -> bool:
        """Whether new requests may go here."""
        return self._closed is None and not self._retired

    async def request(
        self,
        method: str,
        params: JsonObject,
        *,
        seconds: float | None = None,
        sink: NotificationSink | None = None,
    ) -> Reply:
        """Send a request and wait for its answer.

        Args:
            method: the method.
            params: its params; a progress token in `_meta` is replaced by one of ours, and put back on the way back.
            seconds: limit; the session's own for calls, if None.
            sink: takes notifications that belong to this request.

        Returns:
            The answer, or how there came to be none. Cancelling the caller tells the server so.
        """
        if self._closed is not None:
            return self._closed
        id_ = next(self._ids)
        params, token = _replace_token(params, id_)
        pending = _Pending(asyncio.get_running_loop().create_future(), token, sink)
        self._pending[id_] = pending
        try:
            async with asyncio.timeout(seconds or self._limits.call_seconds):
                await self._channel.send(build_request(id_, method, params))
                return await pending.answer
        except TimeoutError:
            self._retired = True
            self._cancel_upstream(id_, "timed out")
            limit = seconds or self._limits.call_seconds
            return Failed(Fault.TIMEOUT, f"the server did not answer {method} within {limit:g} s")
        except asyncio.CancelledError:
            self._cancel_upstream(id_, "cancelled by the client")
            raise
        finally:
            self._pending.pop(id_, None)

    async def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification."""
        if self._closed is None:
            await self._channel.send(build_notification(method, params))

    async def close_when_idle(self) -> None:
        """Close once the open requests are answered or have run out of time."""
        while self._closed is None and self._pending:
            await asyncio.wait([pending.answer for pending in self._pending.values()])
            await asyncio.sleep(0)  # those that waited leave the table
        await self.close()

    async def close(self) -> None:
        """End the session and the server's process, if it is ours."""
        self.on_closed(Failed(Fault.EXITED, "the session with the server was closed"))
        for task in self._replies:
            task.cancel()
        await self._channel.close()

    def log_tail(self) -> str:
        """Return the end of the server's own log, for people."""
        return self._channel.log_tail()

    def on_message(self, message: Message, *, related: MessageId | None = None) -> None:
        """Take one message of the server."""
        match message:
            case RpcResult(id=id_) | RpcError(id=int() | str() as id_):
                self._settle(id_, message)
            case RpcError():
                self.on_request_failed(None, Failed(Fault.INVALID_MESSAGE, f"the server answered: {message.message}"))
            case Notification():
                self._route(message, related)
            case Request():
                self._answer(message)

    def on_request_failed(self, id_: MessageId | None, failure: Failed) -> None:
        """Take the failure of one request; of all that wait, if it can't be told which."""
        if failure.fault in _ENDS_SESSION:
            self._retired = True
        waiting = [id_] if id_ is not None else list(self._pending)
        for each in waiting:
            self._settle(each, failure)

    def on_closed(self, failure: Failed) -> None:
        """Take the end of the connection."""
        if self._closed is None:
            self._closed = failure
            self.on_request_failed(None, failure)

    def _settle(self, id_: MessageId, reply: Reply) -> None:
        pending = self._pending.get(id_)
        if pending is not None and not pending.answer.done():
            pending.answer.set_result(reply)

    def _route(self, message: Notification, related: MessageId | None) -> None:
        if message.method == "notifications/cancelled":
            return  # about a request of the server's own, which was answered at once
        if message.method == "notifications/progress":
            owner = self._pending.get(_own_id(message.params.get("progressToken")))
            if owner is None or owner.progress_token is None or owner.answer.done():
                return  # a token that nobody gave, or whose request is over
            message = Notification(message.method, {**message.params, "progressToken": owner.progress_token})
        else:
            owner = self._owner_of(related)
        sink = owner.sink if owner is not None and owner.sink is not None else self._on_notification
        sink(message)

    def _owner_of(self, related: MessageId | None) -> _Pending | None:
        """On a plain stream nothing says what a notification belongs to; with one request open, it is that one."""
        if related is not None:
            return self._pending.get(related)
        if self._channel.tells_apart:
            return None
        waiting = [pending for pending in self._pending.values() if not pending.answer.done()]
        return waiting[0] if len(waiting) == 1 else None

    def _answer(self, request: Request) -> None:
        if request.method == "ping":
            reply = build_result(request.id, {})
        else:
            what = DECLINED_METHODS.get(request.method, request.method)
            reply = build_error(request.id, METHOD_NOT_FOUND, f"{what} is not offered to servers under test")
            self._on_declined(request.method)
        self._send_soon(self._channel.send(reply))

    def _cancel_upstream(self, id_: int, reason: str) -> None:
        if self._closed is None:
            self._send_soon(self.notify("notifications/cancelled", {"requestId": id_, "reason": reason}))

    def _send_soon(self, sending: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(sending)
        self._replies.add(task)
        task.add_done_callback(self._replies.discard)


def _replace_token(params: JsonObject, id_: int) -> tuple[JsonObject, str | int | None]:
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        return params, None
    token = meta.get("progressToken")
    if not isinstance(token, str | int):
        return params, None
    return {**params, "_meta": {**meta, "progressToken": id_}}, token


def _own_id(token: object) -> MessageId:
    """Servers may send a numeric token back as text."""
    if isinstance(token, str) and token.isdecimal():
        return int(token)
    return token if isinstance(token, int) else -1
