"""Sockets: one for control, one per attempt; through which one a request came is its source (S16)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from proctor.gateway.protocol import CONTROL_SOURCE, TCP_SOURCE, ConnectionState, GatewayProtocol

_SOCKET_MODE = 0o666
"""A sandbox's user owns nothing outside it; the folder, which only the gateway's user may enter, guards the socket."""

_TURNS_TO_ACCEPT = 3
"""Turns of the loop in which a connection that was just accepted gets its protocol: asyncio forgets, open, one whose
server is closed in between."""


class Listeners:
    """Opens and closes Unix sockets that all lead to the same application.

    Args:
        directory: where the sockets are; its path must be short (a socket's path has at most 107 bytes).
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._config: uvicorn.Config | None = None
        self._on_malformed: Callable[[str], None] = lambda _: None
        self._servers: dict[str, tuple[asyncio.Server, ServerState]] = {}

    def serve(self, app: ASGIApp, *, on_malformed: Callable[[str], None] = lambda _: None) -> None:
        """Say which application the sockets lead to.

        Args:
            app: the application.
            on_malformed: called with the source of bytes that are no HTTP.
        """
        self._on_malformed = on_malformed
        self._config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=75,
        )
        self._config.load()
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory.chmod(0o700)

    def path(self, source: str) -> Path:
        """Return where the socket of a source is."""
        return self._directory / f"{source}.sock"

    async def open(self, source: str) -> Path:
        """Open the socket of a source; one that a dead gateway left is replaced."""
        path = self.path(source)
        path.unlink(missing_ok=True)
        state = ServerState()
        server = await asyncio.get_running_loop().create_unix_server(lambda: self._protocol(source, state), str(path))
        path.chmod(0o600 if source == CONTROL_SOURCE else _SOCKET_MODE)
        self._servers[source] = (server, state)
        return path

    async def open_tcp(self, host: str, port: int) -> tuple[str, int]:
        """Listen on TCP too; the source of a request then is the peer's address."""
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(lambda: self._protocol(TCP_SOURCE, state), host, port)
        name = server.sockets[0].getsockname()
        self._servers[f"tcp:{name[0]}:{name[1]}"] = (server, state)
        return str(name[0]), int(name[1])

    async def close(self, source: str) -> None:
        """Remove a socket and cut every connection that came through it."""
        server, state = self._servers.pop(source)
        self.path(source).unlink(missing_ok=True)
        for _ in range(_TURNS_TO_ACCEPT):
            await asyncio.sleep(0)
        server.close()
        for connection in list(state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        for task in list(state.tasks):
            task.cancel()
        if state.tasks:
            await asyncio.wait(list(state.tasks), timeout=5)

    async def close_all(self) -> None:
        """Remove all sockets."""
        for source in list(self._servers):
            await self.close(source)

    def _protocol(self, source: str, state: ServerState) -> GatewayProtocol:
        if self._config is None:
            raise RuntimeError("sockets are opened before there is an application")
        connection: ConnectionState = {
            "source": source,
            "is_open": lambda: any(known is state for _, known in self._servers.values()),
            "on_malformed": self._on_malformed,
        }
        return GatewayProtocol(self._config, state, {**connection})
