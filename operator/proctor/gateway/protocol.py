"""HTTP/1.1 as the gateway takes it: each connection knows through which socket it came."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypedDict

from uvicorn.protocols.http.h11_impl import H11Protocol

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


class GatewayProtocol(H11Protocol):
    """uvicorn's strict parser, which also reports what it refused."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, unless its socket was closed while it waited, or has more than enough of them."""
        super().connection_made(transport)
        if not self.app_state["is_open"]() or len(self.connections) > MAX_CONNECTIONS:
            transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are no HTTP; the connection is closed."""
        self.app_state["on_malformed"](self.app_state["source"])
        super().send_400_response(msg)
