"""Servers and hooks in pods of their own: nothing is started here, and a hook's pod runs it for each connection."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from proctor.adapters.mcp.dialling import dial
from proctor.adapters.mcp.launch import DatasetAccess, HttpAddress, LaunchedServer, ServerCommand
from proctor.adapters.mcp.limits import McpLimits
from proctor.errors import Retryable, Terminal

_READ_BYTES = 64 * 1024
_TAIL_BYTES = 16
_ENDED = re.compile(rb"\nexit ([0-9]{1,3})\n\Z")
"""How the last line of a hook's connection says how it ended."""

_UNTOLD = 1
"""The code of a hook whose connection ended without that line."""


class ElsewhereLauncher:
    """Starts nothing; knows where hooks are.

    Args:
        hooks: host and port of each hook, by server and database.
        limits: bounds of a hook.
    """

    def __init__(self, hooks: Mapping[tuple[str, str], tuple[str, int]], limits: McpLimits | None = None) -> None:
        self._hooks = hooks
        self._limits = limits or McpLimits()

    async def launch(self, command: ServerCommand, dataset: DatasetAccess, *, line_bytes: int) -> LaunchedServer:
        """Refuse.

        Raises:
            Terminal: always.
        """
        del dataset, line_bytes
        raise _not_here(command)

    async def launch_http(
        self, command: ServerCommand, dataset: DatasetAccess, *, port: int
    ) -> tuple[LaunchedServer, HttpAddress]:
        """Refuse.

        Raises:
            Terminal: always.
        """
        del dataset, port
        raise _not_here(command)

    @asynccontextmanager
    async def launch_hook(
        self, command: ServerCommand, dataset: DatasetAccess, server: HttpAddress
    ) -> AsyncIterator[tuple[LaunchedServer, str]]:
        """Let a hook's pod run it, and read what it prints; its connection is cut on leaving.

        Raises:
            Terminal: no pod is known for it.
            Retryable: its pod does not answer.
        """
        address = self._hooks.get((command.server, dataset.database))
        if address is None:
            raise _not_here(command)
        try:
            reader, writer = await dial(*address, seconds=self._limits.start_seconds, line_bytes=_READ_BYTES)
        except TimeoutError as error:
            raise Retryable(f"server {command.server!r}: its provision hook's pod does not answer") from error
        hook = DialledHook(reader, writer)
        try:
            yield hook, server.base_url
        finally:
            await hook.terminate()


class DialledHook:
    """A hook at the other end of a connection, which tells in its last line how it ended."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._source = reader
        self.writer = writer
        self.reader = asyncio.StreamReader()
        self._code: int | None = None
        self._following = asyncio.create_task(self._follow())

    def exit_code(self) -> int | None:
        """Return its exit code; None while it runs."""
        return self._code

    def log_tail(self) -> str:
        """Return nothing: its standard error is its pod's log."""
        return ""

    async def terminate(self) -> None:
        """Cut the connection."""
        self.writer.transport.abort()
        self._following.cancel()
        await asyncio.gather(self._following, return_exceptions=True)

    async def _follow(self) -> None:
        tail = b""
        try:
            while piece := await self._source.read(_READ_BYTES):
                tail += piece
                self.reader.feed_data(tail[:-_TAIL_BYTES])
                tail = tail[-_TAIL_BYTES:]
        except OSError:
            tail = b""
        told = _ENDED.search(tail)
        self.reader.feed_data(tail[: told.start()] if told else tail)
        self._code = int(told[1]) if told else _UNTOLD
        self.reader.feed_eof()


def _not_here(command: ServerCommand) -> Terminal:
    return Terminal(f"server {command.server!r}: this gateway starts no programs, and was told of no pod that does")
