"""A server under test in its sandbox: its standard streams, its log, and its end."""

from __future__ import annotations

import asyncio
import signal

from proctor.adapters.sandbox.sandboxed import GRACE_SECONDS
from proctor.adapters.sandbox.spec import SandboxSpec
from proctor.adapters.sandbox.starting import Started, Streams, start

_KEPT_BYTES = 16 * 1024
_LOOK_SECONDS = 0.1
_LOOK_SOON_SECONDS = 0.05
_REAP_SECONDS = 1.0
_SIGNALLED = 128
_NOISY_BYTES_PER_SECOND = 1024 * 1024
"""What is read of a server that has said more than anybody will read: whoever prints for ever waits for us, not we."""


async def launch_server(
    spec: SandboxSpec, *, line_bytes: int = 64 * 1024, grace: float = GRACE_SECONDS
) -> SandboxedServer:
    """Start a server; call it in the thread that lives as long as this process (bubblewrap is bound to it).

    Args:
        spec: the sandbox.
        line_bytes: limit of its standard output's buffer.
        grace: seconds between TERM and KILL.

    Raises:
        Terminal: bubblewrap is missing.
        Retryable: the sandbox could not be made.
    """
    pipe = asyncio.subprocess.PIPE
    return SandboxedServer(await start(spec, Streams(pipe, pipe, pipe, line_bytes)), spec, grace=grace)


class SandboxedServer:
    """A launched server."""

    def __init__(self, started: Started, spec: SandboxSpec, *, grace: float) -> None:
        process = started.process
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise RuntimeError("a server is started with all its streams piped")
        self.reader = process.stdout
        self.writer = process.stdin
        self.excess = ""
        self._started = started
        self._limits = spec.limits
        self._grace = grace
        self._log = bytearray()
        self._gone = asyncio.ensure_future(started.gone())
        self._tasks = (asyncio.create_task(self._follow(process.stderr)), asyncio.create_task(self._watch()))
        self._ending: asyncio.Future[None] | None = None
        self._gone.add_done_callback(lambda _: started.close())

    def exit_code(self) -> int | None:
        """Return its exit code, negative for a signal; None while it runs."""
        code = self._started.process.returncode
        return code if code is None or code < _SIGNALLED else _SIGNALLED - code

    def log_tail(self) -> str:
        """Return the end of its standard error, printable signs only."""
        text = self._log.decode("utf-8", "replace")
        note = f"\n(ended: {self.excess})" if self.excess else ""
        return "".join(sign for sign in text if sign.isprintable() or sign in "\n\t") + note

    async def terminate(self) -> None:
        """End it and everything that it started: input closed and TERM, a time of grace, KILL. May be called twice."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        self.writer.close()
        if not self._gone.done():
            self._started.signal(signal.SIGTERM)
            await asyncio.wait({self._gone}, timeout=self._grace)
        if not self._gone.done():
            self._started.kill()
            await asyncio.wait({self._gone}, timeout=_REAP_SECONDS)
        # Nothing of it is left. Asyncio waits for the ends of its pipes too, and never sees that of one which was full
        # when its reader stopped.
        self._started.process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - asyncio has no other way
        await self._gone
        for task in self._tasks:
            task.cancel()

    async def _follow(self, stream: asyncio.StreamReader) -> None:
        said = 0
        while piece := await stream.read(65536):
            self._log += piece
            del self._log[:-_KEPT_BYTES]
            said += len(piece)
            if said > self._limits.output_bytes:
                await asyncio.sleep(len(piece) / _NOISY_BYTES_PER_SECOND)

    async def _watch(self) -> None:
        while not self._gone.done():
            seen = self._started.look(self._limits)
            if seen.excess is not None:
                self.excess = seen.excess.message
                self._started.kill()
                return
            is_close = seen.memory_bytes > self._limits.memory_bytes // 2
            await asyncio.sleep(_LOOK_SOON_SECONDS if is_close else _LOOK_SECONDS)
