"""JSON-RPC as lines over a pair of byte streams: standard input and output, or a TCP connection.

Ours instead of the SDK's `stdio_client`, which buffers a line of any length, hands the server this process's HOME and
PATH, and rebuilds each message through models that drop what they don't know.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from proctor.adapters.mcp.channel import Failed, Listener
from proctor.adapters.mcp.jsonrpc import InvalidMessage, JsonObject, Notification, encode, parse_message, peek_id
from proctor.adapters.mcp.limits import McpLimits
from proctor.adapters.mcp.scrub import Scrubber
from proctor.core.gatewaypolicy.toolerrors import Fault

_SKIP_BYTES = 256 * 1024
_YIELD_EVERY = 64
"""Lines read from a full buffer without giving other cells a turn."""


@dataclass(frozen=True, slots=True)
class LineStreams:
    """The two directions of a connection, and how to end and explain it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    terminate: Callable[[], Awaitable[None]]
    explain_end: Callable[[], Awaitable[str]]
    log_tail: Callable[[], str]


class LineChannel:
    """A channel of one JSON-RPC message a line."""

    tells_apart = False

    def __init__(self, streams: LineStreams, limits: McpLimits, scrub: Scrubber) -> None:
        self._streams = streams
        self._scrub = scrub
        self._limits = limits
        self._reading: asyncio.Task[None] | None = None
        self._unanswered = 0
        self._stray = 0

    def start(self, listener: Listener) -> None:
        """Begin to read."""
        self._reading = asyncio.create_task(self._read(listener))

    async def send(self, message: JsonObject) -> None:
        """Send one line; a broken pipe shows in the reading direction too, so nothing is raised here."""
        with contextlib.suppress(ConnectionError, RuntimeError):
            self._streams.writer.write(encode(message) + b"\n")
            await self._streams.writer.drain()

    async def close(self) -> None:
        """Stop reading, and end the server."""
        if self._reading is not None:
            self._reading.cancel()
        self._streams.writer.close()
        await self._streams.terminate()

    def log_tail(self) -> str:
        """Return the end of the server's standard error."""
        return self._streams.log_tail()

    async def _read(self, listener: Listener) -> None:
        try:
            failure = await self._read_lines(listener)
        except ConnectionError:
            failure = None
        listener.on_closed(failure or Failed(Fault.EXITED, await self._streams.explain_end()))

    async def _read_lines(self, listener: Listener) -> Failed | None:
        """Read until the stream ends (None) or the server has gone too far."""
        reader = self._streams.reader
        count = 0
        while True:
            try:
                line = await reader.readuntil(b"\n")
            except asyncio.IncompleteReadError as e:
                if e.partial.strip():
                    self._take(e.partial, listener)
                return None
            except asyncio.LimitOverrunError:
                if not await self._skip_line(listener):
                    return Failed(Fault.FLOOD, "the server wrote a message without end")
                continue
            self._take(line, listener)
            if self._unanswered > self._limits.notifications:
                return Failed(Fault.FLOOD, f"the server sent {self._unanswered} notifications without an answer")
            if self._stray > self._limits.stray_lines:
                return Failed(Fault.FLOOD, "the server wrote output without end that is not JSON-RPC")
            count += 1
            if count % _YIELD_EVERY == 0:
                await asyncio.sleep(0)

    def _take(self, line: bytes, listener: Listener) -> None:
        if len(line) > self._limits.message_bytes:
            listener.on_request_failed(peek_id(line[:256]), self._too_large())
            return
        stripped = line.strip()
        if not stripped.startswith((b"{", b"[")):
            # Banners and debug prints: clients in the field pass over them, so a server that prints still works.
            self._stray += 1 if stripped else 0
            return
        try:
            message = parse_message(self._scrub(stripped))
        except InvalidMessage as e:
            self._stray += 1
            failure = Failed(Fault.INVALID_MESSAGE, f"the server sent an invalid JSON-RPC message: {e}")
            listener.on_request_failed(e.id, failure)
            return
        self._unanswered = self._unanswered + 1 if isinstance(message, Notification) else 0
        listener.on_message(message)

    async def _skip_line(self, listener: Listener) -> bool:
        """Read past the rest of a line that is too long, in bounded memory; False if it doesn't end.

        Only then is its request told: what follows on the same stream may have to wait for the end of the line.
        """
        reader = self._streams.reader
        head = await reader.read(_SKIP_BYTES)
        skipped = len(head)
        while skipped < self._limits.skipped_bytes:
            try:
                await reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as e:
                skipped += len(await reader.readexactly(e.consumed or 1))
                continue
            except asyncio.IncompleteReadError:
                pass
            listener.on_request_failed(peek_id(head), self._too_large())
            return True
        return False

    def _too_large(self) -> Failed:
        limit = self._limits.message_bytes
        return Failed(Fault.RESULT_TOO_LARGE, f"the answer is larger than {limit} bytes and was cut: ask for less")
