"""Connecting to a pod that may still be starting."""

from __future__ import annotations

import asyncio

_KNOCK_SECONDS = 0.25


async def dial(
    host: str, port: int, *, seconds: float, line_bytes: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Knock until somebody opens.

    Args:
        host: an address.
        port: a port.
        seconds: how long to go on.
        line_bytes: limit of the reader's buffer.

    Raises:
        TimeoutError: nobody did.
    """
    async with asyncio.timeout(seconds):
        while True:
            try:
                return await asyncio.open_connection(host, port, limit=line_bytes)
            except OSError:
                await asyncio.sleep(_KNOCK_SECONDS)


async def await_listener(host: str, port: int, *, seconds: float) -> None:
    """Return once somebody listens.

    Raises:
        TimeoutError: nobody did.
    """
    _, writer = await dial(host, port, seconds=seconds, line_bytes=1)
    writer.transport.abort()
