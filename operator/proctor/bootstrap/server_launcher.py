"""Servers under test in sandboxes of their own, each with one way out: to its dataset's engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from ipaddress import ip_address
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

from proctor.adapters.mcp.launch import SERVER_URL, DatasetAccess, HttpAddress, LaunchedServer, ServerCommand
from proctor.adapters.sandbox.bridge import Bridge, forward_unix_to_tcp
from proctor.adapters.sandbox.serverprocess import launch_server
from proctor.adapters.sandbox.servers import DATASET_HOST, DATASET_PORT, Neighbour, ServerRequest, server_spec
from proctor.adapters.wire import DEFAULT_PORTS

_Address = tuple[str, int]
_HOOK_LINE_BYTES = 64 * 1024
_FIRST_FREE_PORT, _ABOVE = 1024, 10_000
"""Below the first port nobody in a sandbox may listen; such a server is found this much higher."""


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

    @asynccontextmanager
    async def launch_hook(
        self, command: ServerCommand, dataset: DatasetAccess, server: HttpAddress
    ) -> AsyncIterator[tuple[LaunchedServer, str]]:
        """Run a program that prepares a server, in a sandbox like that server's; it is ended on leaving.

        It finds the server by the server's own name, so that certificates hold, and is told the dataset's address as
        the server has to use it.

        Raises:
            Terminal: bubblewrap is missing.
            Retryable: the sandbox could not be made.
            InvalidInput: the program can't be found.
        """
        url = urlsplit(server.base_url)
        host, port = url.hostname or "", url.port or DEFAULT_PORTS[url.scheme]
        inner = port if port >= _FIRST_FREE_PORT else port + _ABOVE
        name = DATASET_HOST if _is_address(host) else host
        told = f"{url.scheme}://{name}:{inner}"
        values = {**command.values, SERVER_URL: told}
        async with AsyncExitStack() as stack:
            number = next(self._numbers)
            names = self._sockets_dir / f"server{number}.hosts"
            names.write_text(f"{DATASET_HOST} localhost {name}\n")
            stack.callback(names.unlink)
            socket = Path(server.socket) if server.socket is not None else None
            request = self._request(replace(command, values=values), dataset, elsewhere=socket is None)
            if socket is not None:
                socket.chmod(0o666)  # the hook's user owns nothing; the folder guards the socket
            else:
                socket = self._sockets_dir / f"server{number}.sock"
                await stack.enter_async_context(forward_unix_to_tcp(socket, host, port))
            request = replace(request, neighbour=Neighbour(inner, socket, names))
            hook = await launch_server(server_spec(request), line_bytes=_HOOK_LINE_BYTES)
            stack.push_async_callback(hook.terminate)
            yield hook, told

    def _request(self, command: ServerCommand, dataset: DatasetAccess, *, elsewhere: bool = False) -> ServerRequest:
        # Inside, the engine is on the sandbox's own loopback; nothing else answers there.
        inside = dataset if elsewhere else replace(dataset, host=DATASET_HOST, port=DATASET_PORT)
        return ServerRequest(
            command=command.command,
            environment=command.environment(inside),
            search_path=command.search_path,
            dataset=self._bridges[dataset.host, dataset.port].socket,
            private=self._private,
        )


def _is_address(host: str) -> bool:
    """Tell whether a host is a number: no file of names can lead that elsewhere."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
