"""What a client of ClickHouse sends, and what it makes of answers."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from proctor.adapters.clickhouse.answers import ClickHouseError
from proctor.adapters.clickhouse.client import Client, open_client
from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.session import HttpSession
from proctor.errors import DiskFull, Retryable

PASSWORD = "pä:55 wörd\n"


@asynccontextmanager
async def serve(answer: bytes, *, status: int = 200, code: str = "") -> AsyncIterator[tuple[Endpoint, list[bytes]]]:
    """Run a server that answers one request so; yield where it is, with the heads that it got."""
    heads: list[bytes] = []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        told = f"X-ClickHouse-Exception-Code: {code}\r\n" if code else ""
        head = f"HTTP/1.1 {status} So\r\n{told}Connection: close\r\nContent-Length: {len(answer)}\r\n\r\n"
        writer.write(head.encode() + answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(respond, "127.0.0.1", 0) as server:
        yield Endpoint("127.0.0.1", server.sockets[0].getsockname()[1], "me", PASSWORD), heads


@asynccontextmanager
async def connect_to(answer: bytes, *, status: int = 200, code: str = "") -> AsyncIterator[tuple[Client, list[bytes]]]:
    """Open a client of such a server; yield it with the heads that the server got."""
    async with serve(answer, status=status, code=code) as (endpoint, heads), open_client(endpoint) as client:
        yield client, heads


async def test_rows_come_as_they_were_stored() -> None:
    """M-A8: also a line end and a lone surrogate within a value; the login holds any letters."""
    async with connect_to(b'[1,"a\\nb"]\n["2","\xed\xa0\x80"]\n') as (client, heads):
        assert await client.rows("SELECT 1") == [(1, "a\nb"), ("2", "\ud800")]
    [login] = [line for line in heads[0].split(b"\r\n") if line.lower().startswith(b"authorization: basic ")]
    assert base64.b64decode(login.split()[-1]).decode() == f"me:{PASSWORD}"


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [(500, "241", Retryable), (500, "60", ClickHouseError), (200, "159", Retryable), (502, "", Retryable)],
)
async def test_a_refusal_says_what_happens_next(status: int, code: str, kind: type[Exception]) -> None:
    """Faults: what passes is worth another try and the rest is final, also where an answer had begun well."""
    async with connect_to(b"the reason", status=status, code=code) as (client, _):
        with pytest.raises(kind, match="the reason") as caught:
            await client.execute("DROP TABLE t")
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize(
    ("end", "kind", "said"),
    [
        (b"Code: 241. DB::Exception: Memory limit exceeded", Retryable, "Memory limit exceeded"),
        (b"Code: 47. DB::Exception: Unknown identifier x", ClickHouseError, "Unknown identifier x"),
        (b"", Retryable, "broke off in the middle"),
    ],
)
async def test_an_answer_that_breaks_off_is_none(end: bytes, kind: type[Exception], said: str) -> None:
    """Faults: an error behind rows that were sent already is told like any other, by either way to ask."""
    answer = b'[1]\n[2]\n["3' + end
    async with connect_to(answer) as (client, _):
        with pytest.raises(kind, match=said):
            await client.rows("SELECT 1")
    async with serve(answer) as (endpoint, _):
        with pytest.raises(kind, match=said):
            await HttpSession(endpoint).fetch("SELECT 1")


async def test_words_in_rows_are_no_error() -> None:
    """S21, P30: an agent that filled its disk says so in its record, which is read like any other."""
    said = "No space left on device"
    async with serve(f'["{said}"]\n'.encode()) as (endpoint, _):
        assert await HttpSession(endpoint).fetch("SELECT reason FROM attempts") == [(said,)]
    async with serve(said.encode(), status=500, code="243") as (endpoint, _):
        with pytest.raises(DiskFull):
            await HttpSession(endpoint).fetch("SELECT 1")
