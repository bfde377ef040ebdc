"""From a Unix socket, which a sandbox can be given, to a dataset's engine, which listens on this machine's loopback."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket as sockets
import struct
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_PIECE_BYTES = 64 * 1024
_DIAL_SECONDS = 10
_PEER = struct.Struct("3i")

MAX_CONNECTIONS = 64
"""Of one sandbox: several servers may share an engine, and this process's descriptors are everybody's."""


@dataclass(slots=True)
class Bridge:
    """A running forwarder.

    Attributes:
        socket: where it listens.
        refused: connections that the far side refused: what a server then reports is infrastructure's fault.
        broken: connections that the far side ended while it owed an answer: so does an engine that dies.
        last_refusal: why the last one was refused; empty if none was.
        crowded: connections that were cut because their sandbox had too many.
    """

    socket: Path
    refused: int = 0
    broken: int = 0
    last_refusal: str = ""
    crowded: int = 0
    held: Counter[int] = field(default_factory=Counter, repr=False)

    @property
    def losses(self) -> int:
        """How often the far side was not there for what was asked of it."""
        return self.refused + self.broken

    @contextlib.contextmanager
    def admit(self, near: asyncio.StreamWriter) -> Iterator[bool]:
        """Count a connection while it lasts; say no to one of a sandbox that has enough of them."""
        sandbox = _identify(near.get_extra_info("socket"))
        if self.held[sandbox] >= MAX_CONNECTIONS:
            self.crowded += 1
            yield False
            return
        self.held[sandbox] += 1
        try:
            yield True
        finally:
            self.held[sandbox] -= 1
            self.held += Counter()  # lets go of those at zero


def _identify(near: sockets.socket) -> int:
    """Return a number that all of one sandbox's processes have in common: their process namespace's."""
    credentials = near.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, _PEER.size)
    process = _PEER.unpack(credentials)[0]
    try:
        return os.stat(f"/proc/{process}/ns/pid").st_ino  # noqa: PTH116 - a link of the kernel's, followed
    except OSError:
        return 0  # it has ended already


@contextlib.asynccontextmanager
async def forward_unix_to_tcp(socket: Path, host: str, port: int) -> AsyncIterator[Bridge]:
    """Forward each connection to a Unix socket to a TCP port, until the context ends.

    Args:
        socket: where to listen; its folder must be closed to strangers, since any sandbox's user may connect.
        host: the far side.
        port: the far side's port.

    Raises:
        OSError: it can't listen there.
    """
    bridge = Bridge(socket)
    connections: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            connections.add(task)
            task.add_done_callback(connections.discard)
        with contextlib.suppress(asyncio.CancelledError):
            await _serve(bridge, (reader, writer), host, port)

    _clear(socket)
    server = await asyncio.start_unix_server(serve, socket)
    os.chmod(socket, 0o666)  # noqa: S103, PTH101 - a sandbox's user owns nothing; the folder guards the socket
    try:
        yield bridge
    finally:
        server.close()
        open_now = list(connections)
        for task in open_now:
            task.cancel()
        await asyncio.gather(*open_now, return_exceptions=True)
        _clear(socket)


def _clear(socket: Path) -> None:
    socket.unlink(missing_ok=True)


async def _serve(bridge: Bridge, near: tuple[asyncio.StreamReader, asyncio.StreamWriter], host: str, port: int) -> None:
    with contextlib.closing(near[1]), bridge.admit(near[1]) as admitted:
        if not admitted:
            return
        try:
            far = await _dial(host, port)
        except OSError as e:  # TimeoutError is one
            bridge.refused += 1
            bridge.last_refusal = f"{host}:{port}: {e or 'no answer'}"
            return
        with contextlib.closing(far[1]):
            exchange = _Exchange(bridge, (host, port))
            await asyncio.gather(exchange.ask(near[0], far[1]), exchange.answer(far[0], near[1]))


class _Exchange:
    """One connection's two directions, and whether the far side ended it while it owed an answer."""

    def __init__(self, bridge: Bridge, address: tuple[str, int]) -> None:
        self._bridge = bridge
        self._address = address
        self._owes = False
        self._hung_up = False

    async def ask(self, near: asyncio.StreamReader, far: asyncio.StreamWriter) -> None:
        while piece := await _read(near):
            self._owes = True
            far.write(piece)
            try:
                await far.drain()
            except ConnectionError:
                return  # it left in the middle of a question, and owes its answer still
        # Who hung up waits for no answer.
        self._owes = False
        self._hung_up = True
        _end(far)

    async def answer(self, far: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):  # whoever asked is gone
            while piece := await _read(far):
                self._owes = False
                near.write(piece)
                await near.drain()
        # Counted before the near side hears of the end, so that whatever it makes of it is known to be not its fault.
        if self._owes or (not self._hung_up and not await _answers(*self._address)):
            self._bridge.broken += 1
        _end(near)


async def _read(reader: asyncio.StreamReader) -> bytes:
    """Return what comes next; nothing once the other end is gone, however it went."""
    try:
        return await reader.read(_PIECE_BYTES)
    except ConnectionError:
        return b""


async def _dial(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    async with asyncio.timeout(_DIAL_SECONDS):
        return await asyncio.open_connection(host, port)


async def _answers(host: str, port: int) -> bool:
    """Tell whether the far side is still there: one that died in the middle of an answer is not."""
    try:
        _, writer = await _dial(host, port)
    except OSError:
        return False
    writer.close()
    return True


def _end(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):  # the other end may be gone already
        writer.write_eof()
