"""An agent in its sandbox: watched, bounded in time, memory and output, and ended whole."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Protocol

from proctor.adapters.sandbox.plain import start_plain
from proctor.adapters.sandbox.processes import Look
from proctor.adapters.sandbox.spec import Isolation, Limits, SandboxSpec
from proctor.adapters.sandbox.starting import Streams, start
from proctor.core.trajectory.outcome import ExitCause, ProcessExit
from proctor.errors import ProctorError

GRACE_SECONDS = 5.0
"""Between TERM and KILL."""

_KEPT_BYTES = 64 * 1024
_MESSAGE_SIGNS = 400
_LOOK_SECONDS = 0.1
_LOOK_SOON_SECONDS = 0.05
"""How often memory is measured once half of it is used: what a process can take in between is little."""


FindHang = Callable[[float], str]
"""From the seconds since its last output to why it counts as hanging; empty if it doesn't."""


class Running(Protocol):
    """A started process with all that it starts."""

    @property
    def process(self) -> asyncio.subprocess.Process:
        """The process that was started here."""
        ...

    def look(self, limits: Limits) -> Look:
        """Measure what it and everything that it has started use."""
        ...

    def signal(self, number: signal.Signals) -> None:
        """Signal the command and everything that it has started."""
        ...

    def kill(self) -> None:
        """End everything at once."""
        ...

    async def gone(self) -> int:
        """Wait until nothing is left; return the exit code."""
        ...

    def has_begun(self) -> bool:
        """Tell whether the command was ever run."""
        ...

    def close(self) -> None:
        """Let go of what was needed to watch it; only once everything is gone."""
        ...


async def launch(
    spec: SandboxSpec, *, deadline: float | None = None, find_hang: FindHang | None = None, grace: float = GRACE_SECONDS
) -> Sandboxed:
    """Start an agent; call it in the thread that lives as long as this process (bubblewrap is bound to it).

    Args:
        spec: the sandbox.
        deadline: seconds from now after which it is ended; None for no limit.
        find_hang: tells whether it hangs, and then it is ended; None if nobody can tell.
        grace: seconds between TERM and KILL.

    A start that fails is not raised: it is how this attempt ended, with cause `START_FAILED`.
    """
    streams = Streams(asyncio.subprocess.PIPE, asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT)
    try:
        running: Running = await (start(spec, streams) if spec.isolation is Isolation.BWRAP else start_plain(spec))
    except (ProctorError, OSError) as e:
        return Sandboxed(None, spec, failure=str(e))
    return Sandboxed(running, spec, deadline=deadline, find_hang=find_hang, grace=grace)


class Sandboxed:
    """A launched agent."""

    def __init__(
        self,
        running: Running | None,
        spec: SandboxSpec,
        *,
        deadline: float | None = None,
        find_hang: FindHang | None = None,
        grace: float = GRACE_SECONDS,
        failure: str = "",
    ) -> None:
        loop = asyncio.get_running_loop()
        self._running = running
        self._limits = spec.limits
        self._grace = grace
        self._find_hang = find_hang
        self._deadline = None if deadline is None else loop.time() + deadline
        self._written_at = loop.time()
        self._tail = bytearray()
        self._written = 0
        self._failure = failure
        self._ending: tuple[ExitCause, str] | None = None
        self._stop = asyncio.Event()
        self._whole = asyncio.ensure_future(self._run())

    async def wait(self) -> ProcessExit:
        """Return how it ended, once nothing of it is left. Cancelling this leaves it running: `terminate` ends it."""
        return await asyncio.shield(self._whole)

    @property
    def output(self) -> str:
        """The end of what it wrote on standard output and error, without control characters but for line ends."""
        text = self._tail.decode("utf-8", "replace")
        return "".join(sign for sign in text if sign.isprintable() or sign in "\n\t")

    async def terminate(self, cause: ExitCause = ExitCause.CANCELLED, message: str = "") -> ProcessExit:
        """End it, unless it has ended: TERM, a time of grace, KILL of everything."""
        self._request_end(cause, message)
        return await self.wait()

    def _request_end(self, cause: ExitCause, message: str) -> None:
        if self._ending is None:
            self._ending = (cause, message)
        self._stop.set()

    async def _run(self) -> ProcessExit:
        if self._running is None:
            return ProcessExit(ExitCause.START_FAILED, None, self._failure[-_MESSAGE_SIGNS:])
        gone = asyncio.ensure_future(self._running.gone())
        reading = asyncio.create_task(self._read())
        watching = asyncio.create_task(self._watch())
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({gone, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not gone.done():
                await self._end(gone)
            code = await gone
            await reading
            begun = self._running.has_begun()
        finally:
            self._running.kill()
            for one in (watching, stopping, reading, gone):
                one.cancel()
            self._running.close()
        return self._describe(code, begun=begun)

    async def _end(self, gone: asyncio.Future[int]) -> None:
        running = self._running
        if running is None:
            return
        if self._ending is None or self._ending[0] is not ExitCause.MEMORY:
            running.signal(signal.SIGTERM)
            await asyncio.wait({gone}, timeout=self._grace)
        running.kill()

    async def _read(self) -> None:
        running = self._running
        if running is None or running.process.stdout is None:
            return
        while piece := await running.process.stdout.read(65536):
            self._tail += piece
            del self._tail[:-_KEPT_BYTES]
            self._written += len(piece)
            self._written_at = asyncio.get_running_loop().time()
            if self._written > self._limits.output_bytes:
                self._request_end(ExitCause.EXCESS, f"it wrote more than {self._limits.output_bytes} bytes of output")

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while self._running is not None:
            seen = self._running.look(self._limits)
            now = loop.time()
            if seen.excess is not None:
                self._request_end(seen.excess.cause, seen.excess.message)
            elif self._deadline is not None and now >= self._deadline:
                self._request_end(ExitCause.DEADLINE, "")
            elif self._find_hang is not None and (hang := self._find_hang(now - self._written_at)):
                self._request_end(ExitCause.HUNG, hang)
            await asyncio.sleep(self._until_next_look(seen.memory_bytes, now))

    def _until_next_look(self, used: int, now: float) -> float:
        look = _LOOK_SOON_SECONDS if used > self._limits.memory_bytes // 2 else _LOOK_SECONDS
        return look if self._deadline is None else max(min(look, self._deadline - now), 0.001)

    def _describe(self, code: int, *, begun: bool) -> ProcessExit:
        # A sign has four bytes at most.
        said = self._tail[-4 * _MESSAGE_SIGNS :].decode("utf-8", "replace")
        text = "".join(sign if sign.isprintable() else " " for sign in said).strip()
        if not begun:
            return ProcessExit(ExitCause.START_FAILED, None, text[-_MESSAGE_SIGNS:])
        cause, message = self._ending or (ExitCause.EXITED, "")
        # Bubblewrap tells of a signal as shells do.
        exit_code = code if code < _SIGNALLED else _SIGNALLED - code
        if message:
            room = _MESSAGE_SIGNS - len(message) - 2
            return ProcessExit(cause, exit_code, f"{message}: {text[-room:]}" if text else message)
        return ProcessExit(cause, exit_code, text[-_MESSAGE_SIGNS:])


_SIGNALLED = 128
