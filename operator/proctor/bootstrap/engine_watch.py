"""Whether datasets' engines are there, seen from beside: for servers that speak to them from pods of their own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

_LOOK_SECONDS = 0.5
_ANSWER_SECONDS = 2.0
"""A busy engine is slow to answer, and nothing is lost by that."""

_PING = b"GET /ping HTTP/1.1\r\nHost: dataset\r\nConnection: close\r\n\r\n"


class EngineAddress(NamedTuple):
    """Where an engine listens; one that speaks TLS is only knocked at."""

    host: str
    port: int
    secure: bool = False


class EngineWatch:
    """Asks each engine again and again, and counts when it is not there.

    Args:
        addresses: of each scenario's engine.
    """

    def __init__(self, addresses: Mapping[str, EngineAddress]) -> None:
        self._addresses = dict(addresses)
        self._losses = dict.fromkeys(self._addresses.values(), 0)

    def losses(self, scenario: str) -> int:
        """Return how often a scenario's engine was not there, so far."""
        return self._losses[self._addresses[scenario]]

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch until the block ends."""
        tasks = [asyncio.create_task(self._watch(address)) for address in self._losses]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def look(self, scenario: str) -> None:
        """Ask a scenario's engine now, because something failed."""
        await self._look(self._addresses[scenario])

    async def _watch(self, address: EngineAddress) -> None:
        while True:
            await self._look(address)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _look(self, address: EngineAddress) -> None:
        if not await _answers(address):
            self._losses[address] += 1


async def see_nothing(_scenario: str) -> None:
    """Where every loss is seen as it happens, there is nothing to look at."""


async def _answers(address: EngineAddress) -> bool:
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(address.host, address.port)
            if address.secure:
                return True
            writer.write(_PING)
            return bool(await reader.read(1))
    except TimeoutError:
        return writer is not None  # it listens; it is busy
    except OSError:
        return False
    finally:
        if writer is not None:
            with contextlib.suppress(OSError):
                writer.transport.abort()
