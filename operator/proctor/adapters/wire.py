"""HTTP/1.1 requests on connections of one's own, with nothing between.

Ours instead of httpx: passing one message on costs a sixth of the calls that it costs there, where it was two thirds of
what the gateway added to a call. Parsing is h11's, as strict as the gateway's own side.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit

import h11

DEFAULT_PORTS = {"http": 80, "https": 443}

_READ_BYTES = 64 * 1024
_MAX_HEAD_BYTES = 64 * 1024
_FINISH_SECONDS, _FINISH_EVENTS = 1.0, 16
"""A stream ends a moment after its answer; one that doesn't is dropped."""


class ConnectError(Exception):
    """Nobody listens, or TLS failed."""


class CutError(Exception):
    """The connection ended or spoke no HTTP before the response was whole."""


@cache
def _default_tls() -> ssl.SSLContext:
    """Loading the certificate store takes 20 ms; one for all."""
    return ssl.create_default_context()


@dataclass(slots=True)
class Connection:
    """One connection and the state of its protocol."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    state: h11.Connection
    idle_seconds: float | None = None

    @property
    def reusable(self) -> bool:
        """Whether another request can follow."""
        return self.state.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE} and not self.reader.at_eof()

    async def send(self, request: h11.Request, body: bytes) -> None:
        """Send a request."""
        parts = [self.state.send(request), self.state.send(h11.Data(data=body)) if body else b""]
        parts.append(self.state.send(h11.EndOfMessage()))
        self.writer.write(b"".join(part for part in parts if part))
        async with asyncio.timeout(self.idle_seconds):
            await self.writer.drain()

    async def next_event(self) -> type[h11.PAUSED | h11.NEED_DATA] | h11.Event:
        """Return what comes next.

        Raises:
            CutError: nothing more comes, or it is no HTTP.
        """
        try:
            while (event := self.state.next_event()) is h11.NEED_DATA:
                async with asyncio.timeout(self.idle_seconds):
                    piece = await self.reader.read(_READ_BYTES)
                self.state.receive_data(piece)
        except (h11.RemoteProtocolError, OSError) as e:  # the end of a time limit is an OSError too
            raise CutError(str(e)) from e
        if isinstance(event, h11.ConnectionClosed):
            raise CutError("the connection was closed")
        return event


class Response:
    """A response whose body is still on its way.

    Attributes:
        status: its status.
        headers: by lower-case name; of several with one name, the last.
    """

    def __init__(self, head: h11.Response, connection: Connection) -> None:
        self.status = head.status_code
        self.headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
        self._connection = connection

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes.

        Raises:
            CutError: it ends too early.
        """
        while isinstance(event := await self._connection.next_event(), h11.Data):
            yield bytes(event.data)


class Wire:
    """Connections to one address; each carries one request at a time and is used again.

    Args:
        base_url: scheme, host and port.
        connect_seconds: limit for one connection.
        socket: a Unix socket that leads there, where the server has no network of its own.
        tls: gives what an https connection is checked with.
        finish_seconds: how long to read on, for the connection's sake, when a response was left before its end.
    """

    def __init__(
        self,
        base_url: str,
        *,
        connect_seconds: float,
        socket: str | None = None,
        tls: Callable[[], ssl.SSLContext] | None = None,
        finish_seconds: float = _FINISH_SECONDS,
    ) -> None:
        parts = urlsplit(base_url)
        self._host = parts.hostname or ""
        self._port = parts.port or DEFAULT_PORTS[parts.scheme]
        self._tls = (tls or _default_tls) if parts.scheme == "https" else None
        self._authority = parts.netloc.rpartition("@")[2].encode()
        self._socket = socket
        self._connect_seconds = connect_seconds
        self._finish_seconds = finish_seconds
        self._idle: list[Connection] = []
        self._is_closed = False

    @contextlib.asynccontextmanager
    async def exchange(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        *,
        body: bytes | None = None,
        idle_seconds: float | None = None,
    ) -> AsyncIterator[Response]:
        """Send a request and give its response; what is left of the body on leaving is dropped with the connection.

        Args:
            method: the request's method.
            path: its path and query.
            headers: all but host and length.
            body: its body.
            idle_seconds: how long the server may stay silent.

        Raises:
            ConnectError: there is no connection to be had.
            CutError: it ended before the response was whole.
        """
        connection = await self._take()
        connection.idle_seconds = idle_seconds
        try:
            await self._send(connection, method, path, headers=headers, body=body)
            while not isinstance(event := await connection.next_event(), h11.Response):
                if not isinstance(event, h11.InformationalResponse):
                    raise CutError("the server answered with no response")
            yield Response(event, connection)
            await self._finish(connection)
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """End all connections: those that are in use, when they are given back."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().writer.close()

    async def _send(
        self, connection: Connection, method: str, path: str, *, headers: Mapping[str, str], body: bytes | None
    ) -> None:
        fields = [(b"host", self._authority), *((name.encode(), value.encode()) for name, value in headers.items())]
        if body is not None:
            fields.append((b"content-length", b"%d" % len(body)))
        try:
            await connection.send(h11.Request(method=method, target=path, headers=fields), body or b"")
        except (OSError, h11.LocalProtocolError) as e:
            raise CutError(str(e)) from e

    async def _take(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable:
                connection.state.start_next_cycle()
                return connection
            connection.writer.close()
        try:
            async with asyncio.timeout(self._connect_seconds):
                reader, writer = await self._connect()
        except (OSError, TimeoutError) as e:
            raise ConnectError(str(e)) from e
        return Connection(reader, writer, h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD_BYTES))

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._socket is not None:
            return await asyncio.open_unix_connection(self._socket)
        return await asyncio.open_connection(self._host, self._port, ssl=self._tls() if self._tls else None)

    def _give_back(self, connection: Connection) -> None:
        if connection.reusable and not self._is_closed:
            self._idle.append(connection)
        else:
            connection.writer.close()

    async def _finish(self, connection: Connection) -> None:
        """Read the little that may follow what was wanted, so that the connection can be used again."""
        if not self._finish_seconds:
            return
        with contextlib.suppress(CutError, TimeoutError):
            async with asyncio.timeout(self._finish_seconds):
                for _ in range(_FINISH_EVENTS):
                    if connection.state.their_state is not h11.SEND_BODY:
                        return
                    await connection.next_event()
