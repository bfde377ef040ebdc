"""The gateway's own HTTP client against servers that frame their answers in every allowed way, and in others."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from proctor.adapters.wire import CutError, Wire

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@asynccontextmanager
async def serve(*answers: bytes) -> AsyncIterator[tuple[Wire, list[bytes]]]:
    """A server that gives these answers in turn and then closes each connection; and the heads that it was sent."""
    heads: list[bytes] = []
    left = list(answers)
    ended: list[asyncio.Future[None]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(end := asyncio.get_running_loop().create_future())
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while left:
                heads.append(await reader.readuntil(b"\r\n\r\n"))
                writer.write(left.pop(0))
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        end.set_result(None)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    wire = Wire(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", connect_seconds=5)
    async with server:
        try:
            yield wire, heads
        finally:
            wire.close()
            await asyncio.gather(*ended)


async def ask(wire: Wire, **headers: str) -> tuple[int, bytes]:
    async with wire.exchange("GET", "/x", headers, idle_seconds=10) as response:
        return response.status, b"".join([piece async for piece in response.pieces()])


@pytest.mark.parametrize(
    "answer",
    [
        WHOLE,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1;more=1\r\nk\r\n0\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + WHOLE,
        b"HTTP/1.0 200 OK\r\n\r\nok",
    ],
    ids=["length", "chunks", "interim", "until-close"],
)
async def test_ways_to_frame_an_answer(answer: bytes) -> None:
    """M-A4: a server may frame its answer as HTTP lets it."""
    async with serve(answer) as (wire, _):
        assert await ask(wire) == (200, b"ok")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"no HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000 + b"\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 60_000 + b"Content-Length: 2\r\n\r\nok",
    ],
    ids=["nothing", "no-http", "short", "cut-chunks", "two-lengths", "wide-header", "many-headers"],
)
async def test_an_answer_that_is_cut_or_no_http_is_none(answer: bytes) -> None:
    """S15: an answer that is not whole is never taken for one, and its head is kept only up to a limit."""
    async with serve(answer) as (wire, _):
        with pytest.raises(CutError):
            await ask(wire)


async def test_a_connection_is_used_again_unless_more_came_than_was_asked_for() -> None:
    """S15: bytes behind an answer are never taken for the next one."""
    async with serve(WHOLE, WHOLE + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfake", WHOLE) as (wire, heads):
        assert [await ask(wire) for _ in range(3)] == [(200, b"ok")] * 3
        assert len(heads) == 3


@pytest.mark.parametrize("value", ["a\r\nx-more: 1", "a\nb", "a\0b"])
async def test_a_header_cannot_hold_another(value: str) -> None:
    """S15: what a suite or an agent puts into a header stays in it."""
    async with serve(WHOLE) as (wire, heads):
        with pytest.raises(CutError):
            await ask(wire, **{"x-given": value})
        assert not heads
