"""Attacks on the gateway's doors, over raw sockets, each beside a request that works."""

from __future__ import annotations

import asyncio
import contextlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from proctor.core.gatewaypolicy.tokens import TokenClaims, build_token, mask_token
from proctor.core.ids import AttemptKey, CellKey
from proctor.core.trajectory.events import EventKind, Status
from proctor.core.trajectory.outcome import ExitCause, ProcessExit
from support.gateway import CELL, OPERATOR_TOKEN, RUN_KEY, RunningGateway, run_gateway

EXITED = ProcessExit(ExitCause.EXITED, 0)
OTHER = CellKey("error-root-cause", "sql", "newest", 2)


async def send_raw(socket: str, text: bytes) -> bytes:
    """Send bytes as they are; return all that comes back until the gateway closes, or falls silent."""
    reader, writer = await asyncio.open_unix_connection(socket)
    received = b""
    with contextlib.suppress(TimeoutError, ConnectionError):  # it may close before it has read all
        async with asyncio.timeout(1):
            writer.write(text)
            await writer.drain()
            while piece := await reader.read(65536):
                received += piece
    writer.close()
    return received


def statuses(received: bytes) -> list[int]:
    return [int(line.split()[1]) for line in received.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]


def denials(gateway: RunningGateway) -> list[str]:
    return [event.error_class for event in gateway.sink.trajectory() if event.status is Status.DENIED]


def head(token: str, target: str = "/brief", host: str = "gateway", method: str = "GET") -> bytes:
    return f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n".encode()


async def test_the_same_bytes_work_when_they_are_plain() -> None:
    """S15, positive control: the probe itself works."""
    async with run_gateway() as gateway:
        opened = await gateway.open()
        received = await send_raw(opened.socket, head(opened.token) + b"Connection: close\r\n\r\n")
        assert statuses(received) == [200]
        assert denials(gateway) == []


@pytest.mark.parametrize(
    ("target", "host", "status", "code"),
    [
        ("http://api.anthropic.com/v1/messages", "gateway", 400, "proctor_host_refused"),
        ("http://gateway/brief", "gateway", 400, "proctor_host_refused"),
        ("//api.anthropic.com/v1/messages", "gateway", 403, "proctor_path_refused"),
        ("/v1/files", "gateway", 403, "proctor_path_refused"),
        ("/v1/messages/batches", "gateway", 403, "proctor_path_refused"),
        ("/v1/messages/../files", "gateway", 403, "proctor_path_refused"),
        ("/v1/%6dessages", "gateway", 403, "proctor_path_refused"),
        ("/runs/attempts", "gateway", 403, "proctor_path_refused"),
        ("/brief", "api.anthropic.com", 403, "proctor_host_refused"),
        ("/brief", "gateway@api.anthropic.com", 403, "proctor_host_refused"),
        ("/brief", "gateway:80:80", 403, "proctor_host_refused"),
        ("/brief", "gateway.evil.example", 403, "proctor_host_refused"),
    ],
)
async def test_tricks_with_targets_and_hosts(target: str, host: str, status: int, code: str) -> None:
    """S15: another host in an absolute URL, Host tricks, other paths of the provider; each is recorded."""
    async with run_gateway() as gateway:
        opened = await gateway.open()
        received = await send_raw(opened.socket, head(opened.token, target, host) + b"Connection: close\r\n\r\n")
        assert statuses(received) == [status]
        assert denials(gateway) == [code]


SMUGGLED = b"GET /brief HTTP/1.1\r\nHost: gateway\r\nX-Smuggled: 1\r\n\r\n"


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        b"Content-Length: 2\r\nContent-Length: 60\r\n\r\n{}",
        b"Content-Length: 2, 60\r\n\r\n{}",
        b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"Content-Length: +2\r\n\r\n{}",
        b"Host: api.anthropic.com\r\nContent-Length: 0\r\n\r\n",
        b"Upgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=[
        "cl-te",
        "te-cl",
        "two-cl",
        "cl-list",
        "odd-te",
        "te-list",
        "te-gzip",
        "te-space",
        "cl-sign",
        "two-hosts",
        "upgrade",
    ],
)
async def test_smuggling(framing: bytes) -> None:
    """S15: a request whose length two readers could see differently is refused, and nothing behind it is read."""
    async with run_gateway() as gateway:
        opened = await gateway.open()
        received = await send_raw(opened.socket, head(opened.token, "/v1/messages", method="POST") + framing + SMUGGLED)
        assert [status for status in statuses(received) if status in {400, 501}] == statuses(received)
        assert len(statuses(received)) == 1
        assert not [event for event in gateway.sink.trajectory() if event.kind is EventKind.BRIEF_READ]
        assert len(denials(gateway)) == 1


@pytest.mark.parametrize(
    "text",
    [
        b"GET /brief HTTP/1.1\r\nHost: gateway\r\nX: " + b"x" * 200_000,
        b"PUT /answer HTTP/1.1\r\nHost: gateway\r\n" + b"X: x\r\n" * 40_000,
        b"PUT /answer HTTP/1.1\r\nHost: gateway\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
        + b"X: x\r\n" * 99_000,
        b"GET /brief HTTP/2.0\r\nHost: gateway\r\n\r\n",
        b"GET /brief#x HTTP/1.1\r\nHost: gateway\r\n\r\n",
        b"GET /brief HTTP/1.1\nHost: gateway\n\n",
    ],
    ids=["wide-header", "many-headers", "trailers", "version", "fragment", "line-ends"],
)
async def test_what_is_no_request_is_refused(text: bytes) -> None:
    """S15: memory stays bounded whatever the head of a request holds, and odd requests reach no door."""
    async with run_gateway() as gateway:
        opened = await gateway.open()
        assert set(statuses(await send_raw(opened.socket, text))) <= {400, 401}
        assert denials(gateway)


async def ask(gateway: RunningGateway, socket: str, **headers: str) -> Any:
    async with gateway.client(socket, **headers) as client:
        return await client.get("/brief")


async def test_an_agent_that_prints_its_token_puts_it_nowhere() -> None:
    """S16, S30: why a cell failed is quoted from its agent's output, and is shown to everybody."""
    async with run_gateway() as gateway:
        opened = await gateway.open()
        said = ProcessExit(ExitCause.EXITED, 1, f"no luck with {opened.token}")
        assert mask_token(said.message, opened.token).endswith("[token]")
        await gateway.attempts.end(opened.id, said)
        (record,) = gateway.sink.attempts
        assert "no luck with pct1" in record.reason
        assert opened.token.rpartition(".")[2] not in repr(record)


async def test_tokens() -> None:
    """S16: another attempt's token, an altered one, none, two, the operator's: 401 with a code of its own."""
    async with run_gateway() as gateway:
        mine, other = await gateway.open(), await gateway.open(OTHER)
        altered = mine.token[:-1] + ("1" if mine.token.endswith("0") else "0")
        good = {"authorization": f"Bearer {mine.token}"}
        assert (await ask(gateway, mine.socket, **good)).status_code == 200
        assert (await ask(gateway, mine.socket, **{"x-api-key": mine.token})).status_code == 200
        assert (await ask(gateway, mine.socket, **good, **{"x-api-key": mine.token})).status_code == 200
        bad: list[tuple[str, dict[str, str]]] = [
            (other.socket, good),
            (mine.socket, {"authorization": f"Bearer {altered}"}),
            (mine.socket, {"authorization": f"Bearer {mine.token}x"}),
            (mine.socket, {"authorization": f"Basic {mine.token}"}),
            (mine.socket, {"authorization": f"Bearer {OPERATOR_TOKEN}"}),
            (mine.socket, {**good, "x-api-key": other.token}),
            (mine.socket, {"x-api-key": "pct1.x.1.2"}),
            (mine.socket, {}),
        ]
        for socket, headers in bad:
            reply = await ask(gateway, socket, **headers)
            assert reply.status_code == 401
            assert reply.json()["error"]["type"] == "proctor_token_refused"
        assert denials(gateway) == ["proctor_token_refused"] * len(bad)


async def test_a_token_made_with_another_deadline_is_none() -> None:
    """S16: the expiry is part of what is signed."""
    async with run_gateway() as gateway:
        opened = await gateway.open()
        key = AttemptKey(gateway.context.run, CELL, 1)
        longer = build_token(RUN_KEY, TokenClaims(key, datetime.now(UTC) + timedelta(days=9)))
        assert (await ask(gateway, opened.socket, authorization=f"Bearer {longer}")).status_code == 401


async def test_a_token_expires() -> None:
    """S16: past the deadline and the cap on waiting a token holds no longer."""
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    times = [now]
    async with run_gateway(clock=lambda: times[0]) as gateway:
        opened = await gateway.open(seconds=100)
        auth = {"authorization": f"Bearer {opened.token}"}
        times[0] = now + timedelta(seconds=699)
        assert (await ask(gateway, opened.socket, **auth)).status_code == 200
        times[0] = now + timedelta(seconds=700)
        reply = await ask(gateway, opened.socket, **auth)
        assert (reply.status_code, reply.json()["error"]["type"]) == (401, "proctor_token_expired")


async def test_after_the_end_nothing_answers() -> None:
    """S16, M-A5: the socket is gone, and a connection that was open is cut."""
    async with run_gateway() as gateway:
        opened = await gateway.open()
        reader, writer = await asyncio.open_unix_connection(opened.socket)
        async with gateway.agent(opened) as agent:
            assert (await agent.get("/brief")).status_code == 200
            await gateway.attempts.end(opened.id, EXITED)
            assert await reader.read() == b""
            writer.close()
            with pytest.raises(httpx.TransportError):
                await agent.get("/brief")


async def test_over_tcp_a_token_belongs_to_the_address_that_used_it_first() -> None:
    """S16: where attempts have addresses, a token is bound to the first; after the end it is refused."""
    async with run_gateway() as gateway:
        _, port = await gateway.listeners.open_tcp("127.0.0.1", 0)
        opened = await gateway.open()
        request = head(opened.token, host=f"127.0.0.1:{port}") + b"Connection: close\r\n\r\n"
        assert statuses(await send_tcp(port, request, "127.0.0.1")) == [200]
        replayed = await send_tcp(port, request, "127.0.0.2")
        assert statuses(replayed) == [401]
        assert b"proctor_source_refused" in replayed
        assert denials(gateway) == ["proctor_source_refused"]
        await gateway.attempts.end(opened.id, EXITED)
        ended = await send_tcp(port, request, "127.0.0.1")
        assert statuses(ended) == [401]
        assert b"proctor_attempt_ended" in ended


async def send_tcp(port: int, text: bytes, source: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
    writer.write(text)
    received = await reader.read()
    writer.close()
    return received


async def test_a_scripted_model_that_is_not_this_cells() -> None:
    """S16: asking for the oracle, or for any other model, is 403 and recorded."""
    async with run_gateway() as gateway:
        opened = await gateway.open()
        async with gateway.agent(opened) as agent:
            for model in ("scripted/oracle", "oracle", "~oracle", "claude-opus", ""):
                body = {"model": model, "max_tokens": 10, "messages": [{"role": "user", "content": "x"}]}
                reply = await agent.post("/v1/messages", json=body)
                assert (reply.status_code, reply.json()["error"]["type"]) == (403, "proctor_model_refused")
        assert denials(gateway) == ["proctor_model_refused"] * 5


async def test_the_control_door_is_the_operators() -> None:
    """S16: an attempt's token opens no control door, and the operator's none of an attempt's."""
    async with run_gateway() as gateway:
        opened = await gateway.open()
        async with gateway.client(gateway.listeners.path("control"), opened.token) as client:
            assert (await client.get("/runs/progress")).status_code == 401
            assert (await client.get("/brief")).status_code == 401
        async with gateway.control() as control:
            assert (await control.get("/runs/progress")).status_code == 200
            assert (await control.get("/brief")).status_code == 403


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"x" * (64 * 1024 + 1), 413, "proctor_request_too_large"),
        (b"\xff\xfe", 400, "proctor_answer_refused"),
    ],
)
async def test_answers_that_are_none(body: bytes, status: int, code: str) -> None:
    """The answer: at most 64 KiB of UTF-8; what is refused leaves the earlier answer as it was."""
    async with run_gateway() as gateway:
        opened = await gateway.open()
        async with gateway.agent(opened) as agent:
            assert (await agent.put("/answer", content="first")).status_code == 204
            reply = await agent.put("/answer", content=body)
            assert (reply.status_code, reply.json()["error"]["type"]) == (status, code)
            assert (await agent.put("/answer", content="é" * 32 * 1024)).status_code == 204
        assert denials(gateway) == [code]


async def test_a_body_without_end_is_not_kept() -> None:
    """S15: memory stays bounded whatever a chunked body's length turns out to be."""
    async with run_gateway() as gateway:
        opened = await gateway.open()

        async def endless() -> Any:
            while True:
                yield b"x" * 65536

        async with gateway.agent(opened) as agent:
            # The gateway answers and closes while the client still writes, so that it may not see the answer.
            with contextlib.suppress(httpx.TransportError):
                assert (await agent.put("/answer", content=endless())).status_code == 413
        assert denials(gateway) == ["proctor_request_too_large"]


async def test_an_attempt_is_opened_once() -> None:
    """P30: a result is written once per cell and attempt; a second try needs a new number."""
    async with run_gateway() as gateway, gateway.control() as control:
        body = {"cell": str(CELL), "attempt": 1, "deadlineSeconds": 60}
        opened = await control.post("/runs/attempts", json=body)
        assert opened.status_code == 201
        told_again = await control.post("/runs/attempts", json=body)
        assert told_again.json() == opened.json()
        ended = await control.post(f"/runs/attempts/{opened.json()['id']}/end", json={"cause": "exited"})
        assert ended.status_code == 204
        again = await control.post("/runs/attempts", json=body)
        assert again.status_code == 400
        assert "was opened before" in again.json()["error"]["message"]
        for wrong in (
            {"cell": "a/b"},
            {"attempt": 0},
            {"deadlineSeconds": "60"},
            {"more": 1},
            {"cell": "x/sql/newest/1"},
        ):
            assert (await control.post("/runs/attempts", json={**body, "attempt": 2, **wrong})).status_code == 400
        assert (await control.post("/runs/attempts/nobody/end", json={"cause": "exited"})).status_code == 400
        assert json.loads((await control.get("/runs/health")).text)["open"] == 0
