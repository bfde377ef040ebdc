"""Servers, hooks and engines that are somewhere else: found by address, and waited for."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from proctor.adapters.mcp.connect import open_channel
from proctor.adapters.mcp.elsewhere import ElsewhereLauncher
from proctor.adapters.mcp.launch import HttpAddress, ServerCommand
from proctor.adapters.mcp.limits import McpLimits
from proctor.adapters.mcp.target import TcpTarget
from proctor.bootstrap.engine_watch import EngineAddress, EngineWatch
from proctor.errors import Retryable, Terminal
from proctor.gateway.provisioning import Provisioning
from support.mcp import DATASET

COMMAND = ServerCommand("sql", ("hook",))
SERVER = HttpAddress("http://10.96.3.4:9000")
SHORT = McpLimits(start_seconds=0.5, hook_seconds=10, hook_bytes=2000)


@asynccontextmanager
async def answering(said: bytes, *, port: int = 0) -> AsyncIterator[int]:
    """Listen on loopback; say something to everyone, once they are silent, and close."""

    talking: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read(1000)
            writer.write(said)
            await writer.drain()
        except ConnectionError:
            writer.transport.abort()
        writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talking.add(asyncio.create_task(answer(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", port)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.gather(*talking)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def provision(said: bytes) -> object:
    async with answering(said) as port:
        launcher = ElsewhereLauncher({("sql", DATASET.database): ("127.0.0.1", port)}, SHORT)
        return await Provisioning(launcher, SHORT).prepare(COMMAND, DATASET, SERVER)


async def test_a_hook_is_run_by_its_pod_and_read_over_the_connection() -> None:
    """issue, Children: `provision` as a Job; its last line says how it ended, the last but one is the answer."""
    line = b'{"url": "http://10.96.3.4:9000/team/mcp", "headers": {"Authorization": "Bearer a-long-token"}}'
    prepared = await provision(b"starting\n" + line + b"\n\nexit 0\n")
    assert prepared.path == "/team/mcp"  # type: ignore[attr-defined]
    assert prepared.headers == {"Authorization": "Bearer a-long-token"}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"{}\n\nexit 3\n", "exited with code 3"),
        (b"{}\n", "exited with code 1"),
        (b"", "exited with code 1"),
        (b"{}\n\nexit 0\nexit", "exited with code 1"),
        (b"x" * 5000 + b"\n\nexit 0\n", "more than 2000 bytes"),
        (b'{"url": "http://elsewhere/"}\n\nexit 0\n', "another scheme, host or port"),
    ],
)
async def test_a_hook_that_fails_cuts_or_lies_is_refused(said: bytes, why: str) -> None:
    """S29: a stranger's program says where requests go; a connection that is cut is no answer."""
    with pytest.raises(Terminal, match=why):
        await provision(said)


async def test_nothing_is_started_where_servers_have_pods_of_their_own() -> None:
    """issue, Children: a gateway's pod runs no stranger's code, whatever it is told."""
    launcher = ElsewhereLauncher({})
    with pytest.raises(Terminal, match="starts no programs"):
        await launcher.launch(COMMAND, DATASET, line_bytes=100)
    with pytest.raises(Terminal, match="starts no programs"):
        await launcher.launch_http(COMMAND, DATASET, port=1)
    with pytest.raises(Terminal, match="starts no programs"):
        async with launcher.launch_hook(COMMAND, DATASET, SERVER):
            pass


async def test_a_hooks_pod_that_never_answers_may_answer_later() -> None:
    """issue, Faults: an unschedulable pod is infrastructure."""
    launcher = ElsewhereLauncher({("sql", DATASET.database): ("127.0.0.1", free_port())}, SHORT)
    with pytest.raises(Retryable, match="does not answer"):
        await Provisioning(launcher, SHORT).prepare(COMMAND, DATASET, SERVER)


async def test_a_toolbox_that_is_still_starting_is_waited_for() -> None:
    """M-A5: a Service refuses until its pod is ready."""
    port = free_port()
    limits = McpLimits(start_seconds=30)
    opening = asyncio.create_task(open_channel(TcpTarget("sql", "127.0.0.1", port), ElsewhereLauncher({}), limits))
    await asyncio.sleep(0)
    assert not opening.done()
    async with answering(b"", port=port):
        channel = await opening
        await channel.close()


async def test_a_toolbox_that_never_starts_is_told_with_its_address() -> None:
    """style: messages name the object and what was attempted."""
    port = free_port()
    with pytest.raises(Terminal, match=f"'sql': no connection to 127.0.0.1:{port}"):
        await open_channel(TcpTarget("sql", "127.0.0.1", port), ElsewhereLauncher({}), SHORT)


async def test_an_engine_that_went_away_is_seen_at_the_next_look() -> None:
    """grading rule 8: a tool call that failed while the engine was away is nobody's mistake."""
    async with answering(b"HTTP/1.1 200 OK\r\n\r\nOk.\n") as port:
        watch = EngineWatch({"s": EngineAddress("127.0.0.1", port)})
        await watch.look("s")
        assert watch.losses("s") == 0
    await watch.look("s")
    assert watch.losses("s") == 1


async def test_an_engine_behind_tls_is_only_knocked_at() -> None:
    """architecture: the user's own ClickHouse; what it says is not ours to read."""
    async with answering(b"") as port:
        plain = EngineWatch({"s": EngineAddress("127.0.0.1", port)})
        secure = EngineWatch({"s": EngineAddress("127.0.0.1", port, secure=True)})
        await plain.look("s")
        await secure.look("s")
    assert (plain.losses("s"), secure.losses("s")) == (1, 0)
