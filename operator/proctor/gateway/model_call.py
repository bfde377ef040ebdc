"""One call of a provider's model: retried while nothing has reached the agent, and recorded exactly once.

Time up to the try that was answered is waiting: it is kept apart from the call's latency and does not count against
the agent's deadline (P23). Once a piece of a stream has been passed on nothing can be taken back, so the start of a
stream is held until it says something; an overload told inside a stream is retried like one told by status (P24).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, NoReturn

from proctor.adapters.models.messages_client import MAX_REPLY_BYTES, ModelRequest, ProviderReply
from proctor.clock import Clock, utc_now
from proctor.core.digests import canonical_json
from proctor.core.gatewaypolicy.assembly import CONTENT_EVENTS, MessageAssembler
from proctor.core.gatewaypolicy.headers import select_reply_headers
from proctor.core.gatewaypolicy.pricing import Usage
from proctor.core.gatewaypolicy.provider import (
    Meaning,
    ProviderFailure,
    choose_pause,
    classify_reply,
    classify_stream_error,
    parse_retry_after,
)
from proctor.core.gatewaypolicy.refusal import RefusalCode, Refused
from proctor.core.gatewaypolicy.sse import EventReader, ServerEvent, StreamTooWideError
from proctor.core.trajectory.events import EventKind, Status
from proctor.errors import Retryable
from proctor.gateway.attempt import Attempt
from proctor.gateway.model_side import ProviderSide
from proctor.gateway.patience import Patience

_MICROSECONDS = 1_000_000
_MAX_REASON = 300
_OK = 200
ABANDONED = "abandoned"
"""The agent was gone before its answer was complete."""


@dataclass(frozen=True, slots=True)
class WholeReply:
    """A reply that is passed on in one piece: a message, or the provider's word that the request is wrong."""

    status: int
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LiveReply:
    """A streamed reply that has begun to say something."""

    events: AsyncIterator[bytes]
    headers: Mapping[str, str]


class ModelCall:
    """One model call of an attempt; its turn is taken already.

    Args:
        attempt: whose call it is.
        side: the provider.
        request: what is sent.
        record: the request for the record, as canonical JSON.
        patience: how an overloaded provider is waited for.
        clock: tells the time of day.
    """

    def __init__(
        self,
        attempt: Attempt,
        side: ProviderSide,
        request: ModelRequest,
        *,
        record: bytes,
        patience: Patience,
        clock: Clock = utc_now,
    ) -> None:
        self._attempt = attempt
        self._side = side
        self._request = request
        self._record = record
        self._patience = patience
        self._clock = clock
        self._span = attempt.start()
        self._open = AsyncExitStack()
        self._assembler: MessageAssembler | None = None
        self._waited_us = 0
        self._retries = 0
        self._settled = False

    async def begin(self) -> WholeReply | LiveReply:
        """Send the request until it is answered.

        Raises:
            Refused: the provider refuses the key, or was waited for as long as allowed.
        """
        try:
            await self._respect_pause()
            while True:
                started = self._patience.monotonic_ns()
                reply = await self._try()
                if not isinstance(reply, ProviderFailure):
                    return reply
                await self._open.aclose()
                if reply.meaning is Meaning.AGENTS_FAULT:
                    return self._pass_fault(reply)
                await self._wait_after(reply, started)
        except asyncio.CancelledError:
            await self.finish()
            raise

    async def finish(self) -> None:
        """Let go of the provider's reply; what was not answered by now was abandoned by the agent."""
        await self._open.aclose()
        result = self._assembler.message() if self._assembler else None
        usage = self._assembler.usage if self._assembler else None
        self._settle(Status.AGENT_ERROR, ABANDONED, result=result, usage=usage)

    async def _try(self) -> WholeReply | LiveReply | ProviderFailure:
        self._open = AsyncExitStack()
        try:
            reply = await self._open.enter_async_context(self._side.provider.send(self._request))
            if reply.status != _OK:
                hint = parse_retry_after(reply.retry_after, now=self._clock())
                return self._scrubbed(classify_reply(reply.status, await reply.read(), retry_after=hint))
            if self._request.stream and reply.is_stream:
                return await self._begin_stream(reply)
            return await self._take_whole(reply)
        except Retryable as error:
            return ProviderFailure(Meaning.RETRY, "connection", str(error))
        except StreamTooWideError as error:
            return ProviderFailure(Meaning.RETRY, "stream", str(error))

    async def _take_whole(self, reply: ProviderReply) -> WholeReply | ProviderFailure:
        body = self._side.provider.scrub(await reply.read())
        await self._open.aclose()
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict) or message.get("type") != "message":
            failure = classify_reply(_OK, body)
            known = failure.error_class.startswith("http_")
            return ProviderFailure(Meaning.RETRY, "no_message" if known else failure.error_class, failure.message)
        self._settle_answered(message, Usage.parse(message.get("usage")))
        return WholeReply(_OK, body, select_reply_headers(reply.headers))

    async def _begin_stream(self, reply: ProviderReply) -> LiveReply | ProviderFailure:
        assembler = MessageAssembler()
        groups = _read_events(reply)
        held: list[ServerEvent] = []
        async for group in groups:
            for position, event in enumerate(group, start=1):
                kind = assembler.feed(event)
                if assembler.error_type:
                    return self._scrubbed(classify_stream_error(assembler.error_type, assembler.error_message))
                held.append(event)
                if kind in CONTENT_EVENTS:
                    self._assembler = assembler
                    following = _go_on(group[position:], groups)
                    return LiveReply(self._pass_on(held, following, assembler), select_reply_headers(reply.headers))
        return ProviderFailure(Meaning.RETRY, "cut", "the stream ended before it said anything")

    async def _pass_on(
        self, held: list[ServerEvent], groups: AsyncIterator[Sequence[ServerEvent]], assembler: MessageAssembler
    ) -> AsyncIterator[bytes]:
        yield self._render(held)
        failure: ProviderFailure | None = None
        try:
            async for group in groups:
                for event in group:
                    assembler.feed(event)
                if assembler.complete:
                    # Before the agent hears of it: the next thing it does may be its last.
                    self._settle_answered(assembler.message(), assembler.usage)
                yield self._render(group)
        except (Retryable, StreamTooWideError) as error:
            failure = ProviderFailure(Meaning.RETRY, "cut", str(error))
        if not self._settled:
            failure = failure or _judge_end(assembler)
            self._settle_broken(assembler, self._scrubbed(failure))
            if not assembler.error_type:
                yield _tell_cut()

    def _render(self, group: Sequence[ServerEvent]) -> bytes:
        return self._side.provider.scrub(b"".join(event.encode() for event in group))

    def _settle_broken(self, assembler: MessageAssembler, failure: ProviderFailure) -> None:
        self._attempt.trouble = self._reason("the provider broke off a stream", failure)
        self._attempt.budget.return_turn()
        self._settle(Status.INFRA_ERROR, failure.error_class, result=assembler.message(), usage=assembler.usage)

    async def _respect_pause(self) -> None:
        seconds = self._side.pause.remaining(now_ns=self._patience.monotonic_ns())
        if seconds > 0:
            await self._wait(seconds, ProviderFailure(Meaning.RETRY, "rate_limit_error", "the provider asked to wait"))

    async def _wait_after(self, failure: ProviderFailure, started: int) -> None:
        now = self._patience.monotonic_ns()
        self._attempt.waits.add(started, now)
        self._waited_us += (now - started) // 1000
        if failure.meaning is not Meaning.RETRY:
            self._give_up(failure)
        seconds = choose_pause(
            self._retries, failure, most=self._patience.pause_seconds, jitter=self._patience.jitter()
        )
        if failure.retry_after is not None:
            # Others with this key either wait for the rest of it, or fail at once where that is past the cap.
            self._side.pause.extend(seconds, now_ns=now)
        await self._wait(seconds, failure)
        self._retries += 1

    async def _wait(self, seconds: float, failure: ProviderFailure) -> None:
        attempt = self._attempt
        if attempt.waited_us + seconds * _MICROSECONDS > self._patience.wait_seconds * _MICROSECONDS:
            self._give_up(failure)
        began = self._patience.monotonic_ns()
        number = attempt.waits.begin(began)
        try:
            await self._patience.sleep(seconds)
        finally:
            now = self._patience.monotonic_ns()
            attempt.waits.end(number, now)
            self._waited_us += (now - began) // 1000

    def _give_up(self, failure: ProviderFailure) -> NoReturn:
        if failure.meaning is Meaning.KEY_REFUSED:
            code, what = RefusalCode.KEY_REFUSED, "the provider refused the key"
        elif failure.meaning is Meaning.TERMINAL:
            code, what = RefusalCode.PROVIDER_UNAVAILABLE, "the provider does not serve this model"
        else:
            code = RefusalCode.PROVIDER_UNAVAILABLE
            what = f"the provider was not there within {self._patience.wait_seconds} s of waiting"
        self._attempt.infra_failure = self._attempt.infra_failure or self._reason(what, failure)
        self._attempt.budget.return_turn()
        self._settle(Status.INFRA_ERROR, failure.error_class)
        raise refuse_unavailable(code, what)

    def _pass_fault(self, failure: ProviderFailure) -> WholeReply:
        """Tell the agent what the provider finds wrong with its request; it has spent a turn on it."""
        error = {"type": failure.error_class, "message": failure.message}
        body = canonical_json({"type": "error", "error": error})
        self._settle(Status.AGENT_ERROR, failure.error_class, result={"type": "error", "error": error})
        return WholeReply(400, body, {"content-type": "application/json"})

    def _settle_answered(self, message: dict[str, Any], usage: Usage) -> None:
        self._attempt.trouble = ""
        self._attempt.note_reply(message)
        self._settle(Status.OK, "", result=message, usage=usage)

    def _settle(
        self, status: Status, error_class: str, *, result: dict[str, Any] | None = None, usage: Usage | None = None
    ) -> None:
        if self._settled:
            return
        self._settled = True
        usage = usage or Usage()
        usd = self._attempt.budget.charge(usage)
        self._attempt.record(
            kind=EventKind.MODEL_CALL,
            span=self._span,
            status=status,
            name=self._side.name,
            error_class=error_class,
            waited_us=self._waited_us,
            retry=self._retries,
            request=self._record,
            result=canonical_json(result) if result is not None else b"",
            usage=usage,
            usd=usd,
        )

    def _scrubbed(self, failure: ProviderFailure) -> ProviderFailure:
        scrub = self._side.provider.scrub
        return ProviderFailure(
            failure.meaning,
            scrub(failure.error_class.encode("utf-8", "replace")).decode(),
            scrub(failure.message.encode("utf-8", "replace")).decode(),
            failure.retry_after,
        )

    def _reason(self, what: str, failure: ProviderFailure) -> str:
        detail = f"{failure.error_class}: {failure.message}" if failure.message else failure.error_class
        return f"{what} (model {self._side.name}; {detail})"[:_MAX_REASON]


def refuse_unavailable(code: RefusalCode, what: str) -> Refused:
    """Return what an agent is told when infrastructure fails it; the record says so already."""
    refused = Refused(code, what, status=502)
    refused.recorded = True
    return refused


async def _read_events(reply: ProviderReply) -> AsyncIterator[Sequence[ServerEvent]]:
    """Give what each piece of a stream completes: what arrived together is passed on together."""
    reader = EventReader()
    size = 0
    async for piece in reply.pieces():
        size += len(piece)
        if size > MAX_REPLY_BYTES:
            raise StreamTooWideError(f"a stream has more than {MAX_REPLY_BYTES} bytes")
        if group := list(reader.feed(piece)):
            yield group


async def _go_on(
    first: Sequence[ServerEvent], groups: AsyncIterator[Sequence[ServerEvent]]
) -> AsyncIterator[Sequence[ServerEvent]]:
    if first:
        yield first
    async for group in groups:
        yield group


def _judge_end(assembler: MessageAssembler) -> ProviderFailure:
    if assembler.error_type:
        return ProviderFailure(Meaning.RETRY, assembler.error_type, assembler.error_message)
    return ProviderFailure(Meaning.RETRY, "cut", "the stream ended in the middle of a message")


def _tell_cut() -> bytes:
    """Say inside the stream that it was cut: a client that waits for its end must not take silence for one."""
    error = {"type": RefusalCode.PROVIDER_UNAVAILABLE.value, "message": "the provider broke off this stream"}
    return ServerEvent("error", canonical_json({"type": "error", "error": error})).encode()
