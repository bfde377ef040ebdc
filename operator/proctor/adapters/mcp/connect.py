"""Opening a channel to a server under test, whichever its transport."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from proctor.adapters.mcp.channel import Channel
from proctor.adapters.mcp.launch import DatasetAccess, HttpAddress, LaunchedServer, ServerCommand, ServerLauncher
from proctor.adapters.mcp.limits import McpLimits
from proctor.adapters.mcp.lines import LineChannel, LineStreams
from proctor.errors import Terminal

_LINE_SLACK = 64 * 1024
"""Room for the envelope around a result of exactly the limit."""


@dataclass(frozen=True, slots=True)
class StdioTarget:
    """A command that speaks on its standard streams; each channel is a fresh process."""

    command: ServerCommand
    dataset: DatasetAccess


@dataclass(frozen=True, slots=True)
class TcpTarget:
    """A port where each connection is one server that speaks JSON-RPC lines."""

    server: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """An endpoint of MCP's streamable HTTP.

    Attributes:
        server: the server's name in the suite, for messages.
        address: where it listens.
        path: the endpoint's path, with its query.
        headers: sent with every request; may hold secrets.
        remote: it runs elsewhere, so that not reaching it says nothing about it.
    """

    server: str
    address: HttpAddress
    path: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    remote: bool = False


Target: TypeAlias = StdioTarget | TcpTarget | HttpTarget


async def open_channel(target: Target, launcher: ServerLauncher, limits: McpLimits) -> Channel:
    """Open a channel; for a command that means: start a fresh process.

    Raises:
        Terminal: the command could not be run, or nothing listens.
    """
    match target:
        case StdioTarget():
            return await _open_stdio(target, launcher, limits)
        case TcpTarget():
            return await _open_tcp(target, limits)
        case HttpTarget():
            raise Terminal(f"server {target.server!r}: http is not supported yet")
        case _:
            assert_never(target)


async def _open_stdio(target: StdioTarget, launcher: ServerLauncher, limits: McpLimits) -> Channel:
    line_bytes = limits.message_bytes + _LINE_SLACK
    launched = await launcher.launch(target.command, target.dataset, line_bytes=line_bytes)
    streams = LineStreams(
        launched.reader,
        launched.writer,
        launched.terminate,
        lambda: explain_exit(launched),
        launched.log_tail,
    )
    return LineChannel(streams, limits)


async def _open_tcp(target: TcpTarget, limits: McpLimits) -> Channel:
    try:
        async with asyncio.timeout(limits.start_seconds):
            reader, writer = await asyncio.open_connection(
                target.host, target.port, limit=limits.message_bytes + _LINE_SLACK
            )
    except (OSError, TimeoutError) as e:
        raise Terminal(f"server {target.server!r}: no connection to {target.host}:{target.port}") from e

    async def terminate() -> None:
        # The far side ends its process when the connection does.
        writer.transport.abort()

    return LineChannel(
        LineStreams(reader, writer, terminate, lambda: "the server closed its connection", lambda: ""), limits
    )


def explain_exit(launched: LaunchedServer) -> str:
    """Say in one line how a server's process ended."""
    code = launched.exit_code()
    if code is None:
        return "the server closed its output"
    if code < 0:
        return f"the server process was killed by signal {-code}"
    return f"the server process exited with code {code}"
