"""Servers under test in sandboxes of their own, each with one way out: to its dataset's engine."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path

from proctor.adapters.mcp.launch import DatasetAccess, HttpAddress, LaunchedServer, ServerCommand
from proctor.adapters.sandbox.bridge import Bridge, forward_unix_to_tcp
from proctor.adapters.sandbox.serverprocess import launch_server
from proctor.adapters.sandbox.servers import DATASET_HOST, DATASET_PORT, ServerRequest, server_spec

_Address = tuple[str, int]


class SandboxLauncher:
    """Starts commands of servers under test in bubblewrap.

    Args:
        sockets_dir: where the sockets between sandboxes and this machine are.
        private: folders that must not be seen inside.
    """

    def __init__(self, sockets_dir: Path, private: Iterable[Path]) -> None:
        self._sockets_dir = sockets_dir
        self._private = tuple(private)
        self._bridges: dict[_Address, Bridge] = {}
        self._numbers = count(1)

    async def open_bridges(self, stack: AsyncExitStack, addresses: Iterable[_Address]) -> None:
        """Open the ways to the engines, until the stack unwinds."""
        for number, (host, port) in enumerate(sorted(set(addresses))):
            socket = self._sockets_dir / f"engine{number}.sock"
            self._bridges[host, port] = await stack.enter_async_context(forward_unix_to_tcp(socket, host, port))

    def losses(self, address: _Address) -> int:
        """Return how often an engine was not there for what a server asked of it."""
        return self._bridges[address].losses

    async def launch(self, command: ServerCommand, dataset: DatasetAccess, *, line_bytes: int) -> LaunchedServer:
        """Start a server that speaks on its standard streams.

        Raises:
            Terminal: bubblewrap is missing.
            Retryable: the sandbox could not be made.
            InvalidInput: the program can't be found.
        """
        return await launch_server(server_spec(self._request(command, dataset)), line_bytes=line_bytes)

    async def launch_http(
        self, command: ServerCommand, dataset: DatasetAccess, *, port: int
    ) -> tuple[LaunchedServer, HttpAddress]:
        """Start a server that listens on a port of its own sandbox; it is reached through a socket.

        Raises:
            Terminal: bubblewrap is missing.
            Retryable: the sandbox could not be made.
            InvalidInput: the program can't be found.
        """
        socket = self._sockets_dir / f"server{next(self._numbers)}.sock"
        request = replace(self._request(command, dataset), inward={port: socket})
        server = await launch_server(server_spec(request))
        return server, HttpAddress(f"http://127.0.0.1:{port}", str(socket))

    def _request(self, command: ServerCommand, dataset: DatasetAccess) -> ServerRequest:
        # Inside, the engine is on the sandbox's own loopback; nothing else answers there.
        inside = replace(dataset, host=DATASET_HOST, port=DATASET_PORT)
        return ServerRequest(
            command=command.command,
            environment=command.environment(inside),
            search_path=command.search_path,
            dataset=self._bridges[dataset.host, dataset.port].socket,
            private=self._private,
        )
