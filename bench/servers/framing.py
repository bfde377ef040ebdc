"""HTTP/1.1 of these servers, as little of it as their clients need. Standard library only."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

Answer = Callable[[bytes, bytes, asyncio.StreamWriter], Awaitable[None]]
"""Takes a request's head and body, and writes the response."""


async def serve(answer: Answer, port: int) -> None:
    """Answer requests for ever, many on one connection; the port is printed."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.lower().split(b"\r\n")
                length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
                await answer(head, await reader.readexactly(length), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(converse, "127.0.0.1", port)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
