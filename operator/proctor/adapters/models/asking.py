"""One question to a model, asked until it is answered: for callers that wait for whole replies, like the judge's.

What a failure means and how long to wait is what the gateway's model side goes by too (P23).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic

from proctor.adapters.models.messages_client import MessagesClient, ModelRequest, ProviderAddress
from proctor.clock import Clock, utc_now
from proctor.core.gatewaypolicy.provider import (
    Meaning,
    ProviderFailure,
    choose_pause,
    classify_reply,
    parse_retry_after,
)
from proctor.errors import Retryable, Terminal

_OK = 200
_SHOWN = 200


@dataclass(frozen=True, kw_only=True)
class AskingLimits:
    """How long a question may take.

    Attributes:
        wait_seconds: how long an overloaded provider is waited for in all; a longer Retry-After fails at once.
        pause_seconds: longest pause between two tries when the provider names none.
        tries: requests per question; bounds what a provider that fails at once can cost.
        sleep: waits.
    """

    wait_seconds: float = 600.0
    pause_seconds: float = 30.0
    tries: int = 40
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class ModelAsker:
    """Asks one model, for as many callers at once as like; what the provider asks one to wait holds for all.

    Args:
        address: where the model is, and its key.
        limits: how long a question may take.
        clock: tells the time of day.
    """

    def __init__(self, address: ProviderAddress, limits: AskingLimits | None = None, clock: Clock = utc_now) -> None:
        self._client = MessagesClient(address)
        self._limits = limits or AskingLimits()
        self._clock = clock
        self._not_before = 0.0

    async def ask(self, body: bytes) -> bytes:
        """Send a request; return the body of its reply.

        Raises:
            Retryable: the provider was not there within the limits.
            Terminal: it refuses the key, the model or the request.
        """
        left = self._limits.wait_seconds
        left -= await self._pause(self._not_before - monotonic(), left, "asked to wait")
        for tried in range(self._limits.tries):
            started = monotonic()
            answer = await self._try(body)
            if isinstance(answer, bytes):
                return answer
            if answer.meaning is not Meaning.RETRY:
                raise Terminal(f"calling the provider: it refuses the request: {_tell(answer)}")
            pause = choose_pause(tried, answer, most=self._limits.pause_seconds, jitter=random.random())  # noqa: S311 - no secret
            if answer.retry_after is not None:
                self._not_before = max(self._not_before, monotonic() + pause)
            left -= monotonic() - started
            left -= await self._pause(pause, left, _tell(answer))
        raise Retryable(f"calling the provider: no answer in {self._limits.tries} tries")

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _pause(self, seconds: float, left: float, why: str) -> float:
        if seconds <= 0:
            return 0.0
        if seconds > left:
            raise Retryable(f"calling the provider: not there within {self._limits.wait_seconds:g} s: {why}")
        await self._limits.sleep(seconds)
        return seconds

    async def _try(self, body: bytes) -> bytes | ProviderFailure:
        try:
            async with self._client.send(ModelRequest(body)) as reply:
                read = self._client.scrub(await reply.read())
                if reply.status == _OK:
                    return read
                hint = parse_retry_after(reply.retry_after, now=self._clock())
                return classify_reply(reply.status, read, retry_after=hint)
        except Retryable as error:
            return ProviderFailure(Meaning.RETRY, "connection", str(error))


def _tell(failure: ProviderFailure) -> str:
    return f"{failure.error_class}: {failure.message}"[:_SHOWN] if failure.message else failure.error_class
