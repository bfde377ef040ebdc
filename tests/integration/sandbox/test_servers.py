"""Servers under test in their sandboxes: real ones, ones that aren't Python, and their way to the dataset."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import struct
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.adapters.sandbox.bridge import MAX_CONNECTIONS, forward_unix_to_tcp
from proctor.adapters.sandbox.serverprocess import SandboxedServer, launch_server
from proctor.adapters.sandbox.servers import ServerRequest, server_spec
from support.sandbox import needs_sandbox, short_folder

pytestmark = needs_sandbox

_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_folder() as path:
        yield path


def _request(*command: str, **changes: Any) -> ServerRequest:
    path = os.pathsep.join((str(Path(sys.executable).parent), "/usr/bin", "/bin"))
    return ServerRequest(**{"command": command, "environment": {}, "search_path": path, **changes})


@pytest.fixture
async def echo_port() -> AsyncIterator[int]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
        writer.write(b"bye")
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _say_hello(server: SandboxedServer) -> Any:
    server.writer.write(json.dumps(_HELLO).encode() + b"\n")
    async with asyncio.timeout(60):
        return json.loads(await server.reader.readline())


@pytest.mark.parametrize("name", ["mcp-clickhouse", "clickscope"])
async def test_real_servers_start_and_speak(name: str) -> None:
    """M-A4: the two servers of the quickstart start in a sandbox, unchanged."""
    if shutil.which(name, path=str(Path(sys.executable).parent)) is None:
        pytest.skip(f"{name} is not installed")
    variables = {
        "CLICKHOUSE_HOST": "127.0.0.1",
        "CLICKHOUSE_PORT": "8123",
        "CLICKHOUSE_USER": "u",
        "CLICKHOUSE_PASSWORD": "p",
        "CLICKHOUSE_SECURE": "false",
    }
    server = await launch_server(server_spec(_request(name, environment=variables)), line_bytes=2**20)
    try:
        reply = await _say_hello(server)
    finally:
        await server.terminate()
    assert "result" in reply, server.log_tail()


async def test_a_server_that_is_not_python(folder: Path) -> None:
    """A node script with a folder of its own, found by its first line, runs with that folder alone in sight."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    prefix = folder / "prefix"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib/server").mkdir(parents=True)
    (prefix / "share").mkdir()
    script = prefix / "lib/server/main.js"
    look = f"require('fs').existsSync({str(prefix / 'share')!r})"
    script.write_text(f"#!/usr/bin/env node\nconsole.log(JSON.stringify({{share: {look}, home: process.env.HOME}}))\n")
    script.chmod(0o755)
    (prefix / "bin/odd-server").symlink_to("../lib/server/main.js")
    request = _request("odd-server", search_path=f"{prefix}/bin:/usr/bin:/bin")
    server = await launch_server(server_spec(request))
    said = await server.reader.read()
    await server.terminate()
    assert json.loads(said) == {"share": False, "home": "/tmp"}, server.log_tail()


async def test_the_way_to_the_dataset(folder: Path, echo_port: int) -> None:
    """S10: from 127.0.0.1:8123 inside to the engine's port, both directions, large, each closed on its own."""
    code = """
import socket, sys
s = socket.create_connection(("127.0.0.1", 8123))
s.settimeout(30)
sent = bytes(range(256)) * 40000
import threading
threading.Thread(target=lambda: (s.sendall(sent), s.shutdown(socket.SHUT_WR))).start()
got = b""
while piece := s.recv(65536): got += piece
print(got == sent + b"bye", len(got))
"""
    async with forward_unix_to_tcp(folder / "d.sock", "127.0.0.1", echo_port) as bridge:
        request = _request(sys.executable, "-c", code, dataset=bridge.socket)
        server = await launch_server(server_spec(request))
        said = await server.reader.read()
        await server.terminate()
        assert said == b"True 10240003\n", server.log_tail()
        assert bridge.refused == 0


async def test_an_engine_that_is_gone_is_counted(folder: Path) -> None:
    """manifest, outcomes: a refused connection behind a server is infrastructure's, and is known as a number."""
    code = "import socket\ns = socket.create_connection(('127.0.0.1', 8123))\nprint(s.recv(1))"
    free = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = free.sockets[0].getsockname()[1]
    free.close()
    await free.wait_closed()
    async with forward_unix_to_tcp(folder / "d.sock", "127.0.0.1", port) as bridge:
        server = await launch_server(server_spec(_request(sys.executable, "-c", code, dataset=bridge.socket)))
        await server.reader.read()
        await server.terminate()
        assert bridge.refused == 1
        assert f"127.0.0.1:{port}" in bridge.last_refusal


class _Engine:
    """A far side that leaves in a way of its own: before, in the middle of, or after an answer."""

    def __init__(self, *, answer: bytes, goes: bool) -> None:
        self._answer = answer
        self._goes = goes
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        if self._goes and self._server is not None:
            self._server.close()
        writer.write(self._answer)
        writer.close()


@pytest.mark.parametrize(
    ("answer", "goes", "broken"),
    [(b"", False, 1), (b"answer", False, 0), (b"half of an ans", True, 1)],
    ids=["unanswered", "answered", "dies-while-it-answers"],
)
async def test_an_engine_that_leaves_over_a_question_is_counted(
    folder: Path, *, answer: bytes, goes: bool, broken: int
) -> None:
    """manifest, outcomes: a connection that ends while an answer is owed is infrastructure's, an idle one's is not."""
    code = "import socket\ns = socket.create_connection(('127.0.0.1', 8123))\ns.sendall(b'?')\nprint(s.recv(100))"
    async with (
        _Engine(answer=answer, goes=goes) as port,
        forward_unix_to_tcp(folder / "d.sock", "127.0.0.1", port) as bridge,
    ):
        server = await launch_server(server_spec(_request(sys.executable, "-c", code, dataset=bridge.socket)))
        said = await server.reader.read()
        await server.terminate()
        assert said.decode().strip() == str(answer)
    assert (bridge.refused, bridge.broken) == (0, broken)


async def test_an_engine_that_resets_while_it_is_asked_is_counted(folder: Path) -> None:
    """manifest, outcomes: a question that was still being written when the engine died was asked all the same."""

    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        writer.transport.abort()

    far = await asyncio.start_server(reset, "127.0.0.1", 0, limit=1000)
    port = far.sockets[0].getsockname()[1]
    async with far, forward_unix_to_tcp(folder / "d.sock", "127.0.0.1", port) as bridge:
        for _ in range(20):  # which of the two directions sees the reset first is chance
            reader, writer = await asyncio.open_unix_connection(bridge.socket)
            writer.write(b"x" * 8_000_000)
            assert await reader.read() == b""
            writer.transport.abort()
        assert (bridge.refused, bridge.broken) == (0, 20)


async def test_one_server_leaves_the_way_open_for_another(folder: Path, echo_port: int) -> None:
    """S10, S23: whoever opens connections without end gets so many; the next server gets its own all the same."""
    greedy = """
import socket, sys
def is_answered(one):
    try:
        one.sendall(b"?")
        return one.recv(1) == b"?"
    except OSError:
        return False
held = [socket.socket(socket.AF_UNIX) for _ in range(300)]
for one in held:
    one.connect("/run/dataset.sock")
print(sum(map(is_answered, held)), flush=True)
sys.stdin.read()
"""
    modest = "import socket\ns = socket.create_connection(('127.0.0.1', 8123))\ns.sendall(b'!')\nprint(s.recv(1))"
    async with forward_unix_to_tcp(folder / "d.sock", "127.0.0.1", echo_port) as bridge:
        first = await launch_server(server_spec(_request(sys.executable, "-c", greedy, dataset=bridge.socket)))
        assert await first.reader.readline() == b"%d\n" % MAX_CONNECTIONS, first.log_tail()
        second = await launch_server(server_spec(_request(sys.executable, "-c", modest, dataset=bridge.socket)))
        assert await second.reader.read() == b"b'!'\n", second.log_tail()
        await first.terminate()
        await second.terminate()
        assert bridge.crowded == 300 - MAX_CONNECTIONS
        assert bridge.losses == 0


async def test_a_server_that_listens_is_reached_through_a_socket(folder: Path) -> None:
    """M-A4: an HTTP server under test listens on its own loopback; outside, only a socket leads there."""
    code = """
import socket
with socket.create_server(("127.0.0.1", 9000)) as s:
    print("up", flush=True)
    while True:
        c, _ = s.accept()
        c.sendall(b"got " + c.recv(100)); c.close()
"""
    way = folder / "in.sock"
    server = await launch_server(server_spec(_request(sys.executable, "-c", code, inward={9000: way})))
    try:
        assert await server.reader.readline() == b"up\n"
        for word in (b"one", b"two"):
            reader, writer = await asyncio.open_unix_connection(way)
            writer.write(word)
            assert await reader.read() == b"got " + word
            writer.close()
            await writer.wait_closed()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", 9000)
    finally:
        await server.terminate()


async def test_input_is_passed_and_its_end_too() -> None:
    """A stdio server sees the end of its input: that is how it is told to leave."""
    server = await launch_server(server_spec(_request(sys.executable, "-c", "import sys; print(sys.stdin.read())")))
    server.writer.write(b"\x00hello")
    server.writer.close()
    assert await server.reader.read() == b"\x00hello\n"
    await server.terminate()
    assert server.exit_code() == 0


@pytest.mark.parametrize(
    ("code", "expected"), [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 11)", -11)]
)
async def test_exit_codes_come_through(code: str, expected: int) -> None:
    """A server's own end is told as it was: a code, or a signal."""
    server = await launch_server(server_spec(_request(sys.executable, "-c", code)))
    await server.reader.read()
    await server.terminate()
    assert server.exit_code() == expected


async def test_a_program_that_disappears_is_said(folder: Path) -> None:
    """What can't be run ends with 127, and its log says why."""
    broken = folder / "bin"
    broken.mkdir()
    (broken / "server").write_text("#!/bin/sh\nexec /no/such/thing\n")
    (broken / "server").chmod(0o755)
    server = await launch_server(server_spec(_request(str(broken / "server"))))
    assert await server.reader.read() == b""
    await server.terminate()
    assert server.exit_code() == 127
    assert "/no/such/thing" in server.log_tail()


async def test_s20_proctor_can_not_be_imported() -> None:
    """S20: in the environment that Proctor shares with a server, its packages are not there; the server's are."""
    code = """
import importlib.util
for name in ("proctor", "proctor_agent", "pydantic"):
    found = importlib.util.find_spec(name)
    print(name, bool(found and found.origin))
"""
    server = await launch_server(server_spec(_request(sys.executable, "-c", code)))
    said = await server.reader.read()
    await server.terminate()
    assert said.decode().splitlines() == ["proctor False", "proctor_agent False", "pydantic True"]
