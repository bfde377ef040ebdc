"""HTTP/1.1 as the gateway takes it: each connection knows through which socket it came."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypedDict

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

CONTROL_SOURCE = "control"
TCP_SOURCE = "tcp"
"""No attempt's opaque id is equal to one of these: ids are 20 hex digits."""

MAX_CONNECTIONS = 128
"""Per socket, so that one sandbox can't use up this process's file descriptors."""


class ConnectionState(TypedDict):
    """What a connection hands to every request, as ``scope["state"]``.

    Attributes:
        source: through which socket it came.
        is_open: tells whether that socket is still open.
        on_malformed: called when its bytes are no HTTP; nothing of them reaches a door.
    """

    source: str
    is_open: Callable[[], bool]
    on_malformed: Callable[[str], None]


MAX_FRAMING_BYTES = 64 * 1024
"""Of a request's head, and of whatever stands between two pieces of its body: the parser would keep any number."""

_VERSIONS = frozenset({"1.0", "1.1"})
_JOINED_BYTES = 64 * 1024


class GatewayProtocol(HttpToolsProtocol):
    """uvicorn's protocol, whose parser is strict, with what it leaves open closed: bounds, versions, odd framing."""

    _framing_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, unless its socket was closed while it waited, or has more than enough of them."""
        super().connection_made(JoiningTransport(transport))
        if not self.app_state["is_open"]() or len(self.connections) > MAX_CONNECTIONS:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request."""
        self._framing_bytes += len(data)
        super().data_received(data)
        if self._framing_bytes > MAX_FRAMING_BYTES and not self.transport.is_closing():
            self.send_400_response("The request's head is too large.")

    def on_headers_complete(self) -> None:
        """Start to answer a request whose end everybody would see at the same place."""
        odd = [value for name, value in self.headers if name == b"transfer-encoding" and value != b"chunked"]
        if odd or self.parser.get_http_version() not in _VERSIONS or b"#" in self.url:
            raise httptools.HttpParserError("a request of another form than is served here")
        super().on_headers_complete()
        # As it was sent: the parser leaves out the host that a target should not have.
        self.scope["raw_path"] = self.url.partition(b"?")[0]

    def on_body(self, body: bytes) -> None:
        """Take a piece of a request's body."""
        self._framing_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Take the end of a request."""
        self._framing_bytes = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are no HTTP; the connection is closed."""
        self.app_state["on_malformed"](self.app_state["source"])
        super().send_400_response(msg)


class JoiningTransport(asyncio.Transport):
    """Sends what was written in one turn of the loop together, so that whoever reads an answer wakes up once for it.

    Args:
        transport: what really sends.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._waiting: list[bytes] = []
        self._size = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes, at the end of this turn at the latest."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(bytes(data))
        self._size += len(data)
        if self._size > _JOINED_BYTES:
            self._flush()

    def close(self) -> None:
        """Send what waits, then end the connection."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        self._waiting.clear()
        self._transport.abort()

    def is_closing(self) -> bool:
        """Tell whether the connection ends."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """Read no more for now."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - as asyncio has it
        """Tell something of the socket."""
        return self._transport.get_extra_info(name, default)

    def _flush(self) -> None:
        waiting, self._waiting, self._size = self._waiting, [], 0
        if waiting:
            self._transport.write(b"".join(waiting))
