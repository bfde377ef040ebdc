"""MCP's streamable HTTP as a client, in bounded memory.

Ours instead of the SDK's: that one reads a JSON answer of any size, follows redirects within an origin, and costs a
second of imports per process and milliseconds per message.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from http import HTTPStatus

from proctor.adapters.mcp.channel import Failed, Listener
from proctor.adapters.mcp.events import EventReader, EventTooLargeError
from proctor.adapters.mcp.jsonrpc import (
    InvalidMessage,
    JsonObject,
    Message,
    MessageId,
    Notification,
    RpcError,
    RpcResult,
    encode,
    parse_message,
)
from proctor.adapters.mcp.limits import McpLimits
from proctor.adapters.mcp.scrub import Scrubber
from proctor.adapters.mcp.target import HttpTarget
from proctor.adapters.wire import ConnectError, CutError, Response, Wire
from proctor.core.gatewaypolicy.toolerrors import Fault

_ERROR_BODY_BYTES = 64 * 1024
_RESUMPTIONS = 3
"""Times that the stream of one request is resumed; a server that polls its client says how long to wait."""
_ANSWERED = "\0"
"""Instead of a place to resume at: there is nothing left to read. No event id may hold NUL."""
_DEFAULT_RETRY_MS = 1000
_MAX_RETRY_MS = 10_000
_CLOSE_SECONDS = 2.0


class _AnswerError(Exception):
    """Carries how a request failed up to where it is told."""

    def __init__(self, failure: Failed) -> None:
        super().__init__(failure.detail)
        self.failure = failure


class HttpChannel:
    """A session with an HTTP endpoint; each request is a POST of its own."""

    tells_apart = True

    def __init__(self, target: HttpTarget, limits: McpLimits, scrub: Scrubber) -> None:
        self._target = target
        self._scrub = scrub
        self._limits = limits
        self._wire = Wire(target.address.base_url, socket=target.address.socket, connect_seconds=limits.start_seconds)
        # Compressed answers could unfold to any size.
        self._fixed = {"user-agent": "proctor", "accept-encoding": "identity", **target.headers}
        self._listener: Listener | None = None
        self._session_id = ""
        self._version = ""
        self._posts: dict[MessageId, asyncio.Task[None]] = {}
        self._stream: asyncio.Task[None] | None = None
        self._unanswered = 0

    def start(self, listener: Listener) -> None:
        """Remember who listens; nothing is read before something is sent."""
        self._listener = listener

    async def send(self, message: JsonObject) -> None:
        """Send one message; a request's answer comes to the listener."""
        id_ = message.get("id")
        if "method" in message and id_ is not None:
            self._posts[id_] = task = asyncio.create_task(self._ask(id_, message))
            task.add_done_callback(lambda _: self._posts.pop(id_, None))
            return
        if message.get("method") == "notifications/cancelled":
            self._forget(message)
        with contextlib.suppress(ConnectError, CutError, TimeoutError):
            async with asyncio.timeout(self._limits.start_seconds), self._post(message):
                pass
        if message.get("method") == "notifications/initialized" and self._session_id:
            self._stream = asyncio.create_task(self._listen())

    async def close(self) -> None:
        """End the session; a server that doesn't answer that is left alone."""
        for task in [*self._posts.values(), *([self._stream] if self._stream else [])]:
            task.cancel()
        if self._session_id:
            with contextlib.suppress(ConnectError, CutError, TimeoutError):
                async with (
                    asyncio.timeout(_CLOSE_SECONDS),
                    self._wire.exchange("DELETE", self._target.path, self._headers()),
                ):
                    pass
        self._wire.close()

    def log_tail(self) -> str:
        """Return nothing: the server's log isn't seen over HTTP."""
        return ""

    def _forget(self, cancelled: JsonObject) -> None:
        """Drop the POST of a request whose answer nobody waits for any more."""
        task = self._posts.get(cancelled["params"]["requestId"])
        if task is not None:
            task.cancel()

    async def _ask(self, id_: MessageId, message: JsonObject) -> None:
        listener = self._listener
        assert listener is not None  # noqa: S101 - `start` comes first
        try:
            await self._exchange(id_, message)
        except _AnswerError as e:
            listener.on_request_failed(id_, e.failure)
        except EventTooLargeError:
            listener.on_request_failed(id_, self._too_large())
        except ConnectError:
            fault = Fault.UNREACHABLE if self._target.remote else Fault.EXITED
            listener.on_request_failed(id_, Failed(fault, "the server can't be reached"))
        except CutError:
            listener.on_request_failed(id_, Failed(Fault.EXITED, "the server cut the connection"))

    async def _exchange(self, id_: MessageId, message: JsonObject) -> None:
        async with self._post(message) as response:
            if message["method"] == "initialize":
                self._session_id = response.headers.get("mcp-session-id", "")
            if not await self._is_good(id_, response):
                return
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind == "application/json":
                body = await self._read_bounded(response, self._limits.message_bytes)
                if not self._take(body, id_):
                    raise _AnswerError(Failed(Fault.INVALID_MESSAGE, "the server answered another request"))
                return
            if kind != "text/event-stream":
                raise _AnswerError(Failed(Fault.INVALID_MESSAGE, "the server answered with neither JSON nor a stream"))
            resume_at, retry_ms = await self._read_stream(response, id_)
        await self._resume(id_, resume_at, retry_ms)

    async def _resume(self, id_: MessageId, resume_at: str, retry_ms: int | None) -> None:
        """Take up the stream of a request that ended before its answer; a no-op if it has been answered."""
        for _ in range(_RESUMPTIONS):
            if resume_at in ("", _ANSWERED):
                break
            await asyncio.sleep(min(_DEFAULT_RETRY_MS if retry_ms is None else retry_ms, _MAX_RETRY_MS) / 1000)
            headers = {**self._headers(), "accept": "text/event-stream", "last-event-id": resume_at}
            async with self._wire.exchange("GET", self._target.path, headers) as response:
                if not await self._is_good(id_, response):
                    return
                resume_at, retry_ms = await self._read_stream(response, id_)
        if resume_at != _ANSWERED:
            raise _AnswerError(Failed(Fault.EXITED, "the server ended its stream without an answer"))

    async def _read_stream(self, response: Response, id_: MessageId | None) -> tuple[str, int | None]:
        """Pass on a stream's messages until the answer to a request; where to resume if it ends before."""
        reader = EventReader(self._limits.message_bytes)
        last, retry_ms = "", None
        async for piece in response.pieces():
            for event in reader.feed(piece):
                last = event.id or last
                retry_ms = event.retry_ms if event.retry_ms is not None else retry_ms
                if event.data and self._take(event.data, id_):
                    return _ANSWERED, None
        return last, retry_ms

    def _take(self, body: bytes, id_: MessageId | None) -> bool:
        """Pass one message on; whether it answers the request."""
        try:
            message = parse_message(self._scrub(body))
        except InvalidMessage as e:
            failure = Failed(Fault.INVALID_MESSAGE, f"the server sent an invalid JSON-RPC message: {e}")
            raise _AnswerError(failure) from e
        self._count(message)
        assert self._listener is not None  # noqa: S101 - `start` comes first
        if isinstance(message, RpcError) and message.id is None and id_ is not None:
            # The server could not tell what it answers; the connection does.
            message = RpcError(id_, message.code, message.message, message.data)
        if isinstance(message, RpcResult) and "protocolVersion" in message.result and not self._version:
            self._version = str(message.result["protocolVersion"])
        self._listener.on_message(message, related=id_)
        return isinstance(message, RpcResult | RpcError) and message.id == id_

    def _count(self, message: Message) -> None:
        self._unanswered = self._unanswered + 1 if isinstance(message, Notification) else 0
        if self._unanswered > self._limits.notifications:
            text = f"the server sent {self._unanswered} notifications without an answer"
            raise _AnswerError(Failed(Fault.FLOOD, text))

    async def _is_good(self, id_: MessageId, response: Response) -> bool:
        """Whether an answer may be read; False if its status came with the answer in it."""
        if response.status == HTTPStatus.OK:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise _AnswerError(Failed(Fault.INVALID_MESSAGE, "the server compressed its answer unasked"))
            return True
        if response.status == HTTPStatus.NOT_FOUND and self._session_id:
            raise _AnswerError(Failed(Fault.SESSION_LOST, "the server lost its session"))
        error = await self._read_error(response)
        if error is not None and self._listener is not None:
            self._listener.on_message(RpcError(id_, error.code, error.message, error.data), related=id_)
            return False
        status = response.status
        raise _AnswerError(Failed(Fault.HTTP_STATUS, f"the server answered with HTTP status {status}", status))

    async def _read_error(self, response: Response) -> RpcError | None:
        with contextlib.suppress(_AnswerError, InvalidMessage):
            message = parse_message(self._scrub(await self._read_bounded(response, _ERROR_BODY_BYTES)))
            return message if isinstance(message, RpcError) else None
        return None

    async def _listen(self) -> None:
        """Read what belongs to no request, as long as the server offers such a stream."""
        resume_at = ""
        retry_ms: int | None = None
        failures = 0
        while failures <= _RESUMPTIONS:
            headers = {**self._headers(), "accept": "text/event-stream"}
            if resume_at:
                headers["last-event-id"] = resume_at
            try:
                async with self._wire.exchange("GET", self._target.path, headers) as response:
                    if response.status != HTTPStatus.OK:
                        return
                    last, retry_ms = await self._read_stream(response, None)
                    resume_at = last or resume_at
                    failures = 0
            except (ConnectError, CutError, EventTooLargeError):
                failures += 1
            except _AnswerError as e:
                if e.failure.fault is Fault.FLOOD and self._listener is not None:
                    self._listener.on_closed(e.failure)
                return
            await asyncio.sleep(min(_DEFAULT_RETRY_MS if retry_ms is None else retry_ms, _MAX_RETRY_MS) / 1000)

    @contextlib.asynccontextmanager
    async def _post(self, message: JsonObject) -> AsyncIterator[Response]:
        headers = {**self._headers(), "content-type": "application/json"}
        async with self._wire.exchange("POST", self._target.path, headers, body=encode(message)) as response:
            yield response

    def _headers(self) -> dict[str, str]:
        headers = {**self._fixed, "accept": "application/json, text/event-stream"}
        if self._session_id:
            headers["mcp-session-id"] = self._session_id
        if self._version:
            headers["mcp-protocol-version"] = self._version
        return headers

    async def _read_bounded(self, response: Response, limit: int) -> bytes:
        chunks: list[bytes] = []
        size = 0
        async for chunk in response.pieces():
            size += len(chunk)
            if size > limit:
                raise _AnswerError(self._too_large())
            chunks.append(chunk)
        return b"".join(chunks)

    def _too_large(self) -> Failed:
        limit = self._limits.message_bytes
        return Failed(Fault.RESULT_TOO_LARGE, f"the answer is larger than {limit} bytes and was cut: ask for less")
