"""Opening a channel to a server under test, whichever its transport."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import assert_never

from proctor.adapters.mcp.channel import Channel
from proctor.adapters.mcp.dialling import dial
from proctor.adapters.mcp.http import HttpChannel
from proctor.adapters.mcp.launch import LaunchedServer, ServerLauncher
from proctor.adapters.mcp.limits import McpLimits
from proctor.adapters.mcp.lines import LineChannel, LineStreams
from proctor.adapters.mcp.scrub import Scrubber
from proctor.adapters.mcp.target import HttpTarget, StdioTarget, Target, TcpTarget
from proctor.errors import Terminal

_LINE_SLACK = 64 * 1024
"""Room for the envelope around a result of exactly the limit."""

_EXIT_LOOKS, _EXIT_LOOK_SECONDS = 25, 0.02


async def open_channel(
    target: Target, launcher: ServerLauncher, limits: McpLimits, *, secrets: Iterable[str] = ()
) -> Channel:
    """Open a channel; for a command that means: start a fresh process.

    Args:
        target: the server.
        launcher: starts commands.
        limits: bounds of the channel.
        secrets: the server's own credentials; they are taken out of what it says.

    Raises:
        Terminal: the command could not be run, or nothing listens.
    """
    scrub = Scrubber(secrets)
    match target:
        case StdioTarget():
            return LineChannel(await _start(target, launcher, limits), limits, scrub)
        case TcpTarget():
            return LineChannel(await _dial(target, limits), limits, scrub)
        case HttpTarget():
            return HttpChannel(target, limits, scrub)
        case _:
            assert_never(target)


async def _start(target: StdioTarget, launcher: ServerLauncher, limits: McpLimits) -> LineStreams:
    line_bytes = limits.message_bytes + _LINE_SLACK
    launched = await launcher.launch(target.command, target.dataset, line_bytes=line_bytes)
    return LineStreams(
        launched.reader,
        launched.writer,
        launched.terminate,
        lambda: explain_exit(launched),
        launched.log_tail,
    )


async def _dial(target: TcpTarget, limits: McpLimits) -> LineStreams:
    line_bytes = limits.message_bytes + _LINE_SLACK
    try:
        # Its pod may still be starting.
        reader, writer = await dial(target.host, target.port, seconds=limits.start_seconds, line_bytes=line_bytes)
    except TimeoutError as e:
        raise Terminal(f"server {target.server!r}: no connection to {target.host}:{target.port}") from e

    async def terminate() -> None:
        # The far side ends its process when the connection does.
        writer.transport.abort()

    async def explain() -> str:
        return "the server closed its connection"

    return LineStreams(reader, writer, terminate, explain, lambda: "")


async def explain_exit(launched: LaunchedServer, *, who: str = "the server process") -> str:
    """Say in one line how a process ended; its output may end a moment before it does."""
    for _ in range(_EXIT_LOOKS):
        if launched.exit_code() is not None:
            break
        await asyncio.sleep(_EXIT_LOOK_SECONDS)
    code = launched.exit_code()
    if code is None:
        return "the server closed its output"
    if code < 0:
        return f"{who} was killed by signal {-code}"
    return f"{who} exited with code {code}"
