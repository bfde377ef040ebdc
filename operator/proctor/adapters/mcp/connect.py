"""Opening a channel to a server under test, whichever its transport."""

from __future__ import annotations

import asyncio
from typing import assert_never

from proctor.adapters.mcp.channel import Channel
from proctor.adapters.mcp.http import HttpChannel
from proctor.adapters.mcp.launch import LaunchedServer, ServerLauncher
from proctor.adapters.mcp.limits import McpLimits
from proctor.adapters.mcp.lines import LineChannel, LineStreams
from proctor.adapters.mcp.target import HttpTarget, StdioTarget, Target, TcpTarget
from proctor.errors import Terminal

_LINE_SLACK = 64 * 1024
"""Room for the envelope around a result of exactly the limit."""

_EXIT_LOOKS, _EXIT_LOOK_SECONDS = 25, 0.02


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
            return HttpChannel(target, limits)
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

    async def explain() -> str:
        return "the server closed its connection"

    return LineChannel(LineStreams(reader, writer, terminate, explain, lambda: ""), limits)


async def explain_exit(launched: LaunchedServer) -> str:
    """Say in one line how a server's process ended; its output may end a moment before it does."""
    for _ in range(_EXIT_LOOKS):
        if launched.exit_code() is not None:
            break
        await asyncio.sleep(_EXIT_LOOK_SECONDS)
    code = launched.exit_code()
    if code is None:
        return "the server closed its output"
    if code < 0:
        return f"the server process was killed by signal {-code}"
    return f"the server process exited with code {code}"
