"""HTTP servers that this gateway starts: one per server and dataset, shared by the cells of that dataset."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass

import httpx

from proctor.adapters.mcp.connect import explain_exit
from proctor.adapters.mcp.launch import DatasetAccess, HttpAddress, LaunchedServer, ServerCommand, ServerLauncher
from proctor.adapters.mcp.limits import McpLimits
from proctor.errors import Terminal

_POLL_SECONDS = 0.1
_LOOK_SECONDS = 1.0
"""A server that is too busy to answer in this time is there."""


@dataclass(frozen=True, slots=True)
class SharedServer:
    """What to start.

    Attributes:
        command: program, arguments and environment.
        dataset: the dataset that it is pointed at.
        port: where it listens.
        path: its endpoint.
    """

    command: ServerCommand
    dataset: DatasetAccess
    port: int
    path: str


class SharedServers:
    """Starts each server when it is first needed, again if it died, and ends them all together."""

    def __init__(self, launcher: ServerLauncher, limits: McpLimits) -> None:
        self._launcher = launcher
        self._limits = limits
        self._running: dict[tuple[str, str], tuple[LaunchedServer, HttpAddress]] = {}
        self._last_words: dict[tuple[str, str], str] = {}
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}
        self._starts: Counter[tuple[str, str]] = Counter()

    async def address(self, shared: SharedServer) -> HttpAddress:
        """Return where a server listens; it runs and answers.

        Raises:
            Terminal: it could not be started, ended, or does not answer in time.
        """
        key = (shared.command.server, shared.dataset.database)
        async with self._locks.setdefault(key, asyncio.Lock()):
            running = self._running.get(key)
            if running is not None:
                if await _is_up(shared, *running):
                    return running[1]
                await running[0].terminate()
            launched, address = await self._launcher.launch_http(shared.command, shared.dataset, port=shared.port)
            try:
                await self._wait(shared, launched, address)
            except BaseException:
                self._last_words[key] = launched.log_tail()
                await launched.terminate()
                raise
            self._running[key] = (launched, address)
            self._starts[key] += 1
            return address

    def starts(self, server: str, database: str) -> int:
        """Return how often a server was started: what it was told before the last start it may have forgotten."""
        return self._starts[server, database]

    def log_tail(self, server: str, database: str) -> str:
        """Return the end of a server's own log, for people; never part of an error, which the agent may see."""
        running = self._running.get((server, database))
        return running[0].log_tail() if running is not None else self._last_words.get((server, database), "")

    async def close(self) -> None:
        """End all servers."""
        running, self._running = self._running, {}
        await asyncio.gather(*(launched.terminate() for launched, _ in running.values()))

    async def _wait(self, shared: SharedServer, launched: LaunchedServer, address: HttpAddress) -> None:
        """Wait until it speaks HTTP; that a port is open says little where a forwarder stands before it."""
        server = shared.command.server
        async with _open_client(address, seconds=5) as client:
            try:
                async with asyncio.timeout(self._limits.start_seconds):
                    while not await _answers(client, shared.path):
                        if launched.exit_code() is not None:
                            raise Terminal(f"server {server!r}: {await explain_exit(launched)}")
                        await asyncio.sleep(_POLL_SECONDS)
            except TimeoutError as e:
                limit = self._limits.start_seconds
                raise Terminal(f"server {server!r}: nothing answers on port {shared.port} within {limit:g} s") from e


async def _is_up(shared: SharedServer, launched: LaunchedServer, address: HttpAddress) -> bool:
    """Whether a server that was started still runs; its connections end a moment before its exit is known."""
    if launched.exit_code() is not None:
        return False
    async with _open_client(address, seconds=_LOOK_SECONDS) as client:
        try:
            await client.head(shared.path)
        except httpx.TimeoutException:
            return True
        except httpx.HTTPError:
            await explain_exit(launched)
    return launched.exit_code() is None


def _open_client(address: HttpAddress, *, seconds: float) -> httpx.AsyncClient:
    transport = httpx.AsyncHTTPTransport(uds=address.socket, verify=False)
    return httpx.AsyncClient(transport=transport, base_url=address.base_url, timeout=seconds, trust_env=False)


async def _answers(client: httpx.AsyncClient, path: str) -> bool:
    try:
        await client.head(path)
    except httpx.HTTPError:
        return False
    return True
