"""An engine that is started again when it dies, so that a run outlives it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.errors import Retryable, Terminal
from proctor.local.engine import ADMIN_ONLY, Access, Engine, EngineLimits, is_served
from proctor.reconcile.observed import Readiness

_MAX_STARTS = 5
"""One start and four restarts: whoever kills an engine more often than that in one run means it."""

_READERS_SECONDS = 120.0
"""A report of the largest run takes a fraction of it."""

_POLL_SECONDS = 0.2


class KeptEngine:
    """Keeps one engine on one data folder, at one address.

    Args:
        path: its data folder.
        log: where it writes its errors.
        notify: called whenever it came up or went down.
        access: who may connect.
        limits: memory, threads, protocols.
    """

    def __init__(
        self,
        path: Path,
        *,
        log: Path,
        notify: Callable[[], None],
        access: Access = ADMIN_ONLY,
        limits: EngineLimits | None = None,
    ) -> None:
        self._path = path
        self._log = log
        self._notify = notify
        self._access = access
        self._limits = limits
        self._task: asyncio.Task[None] | None = None
        self._engine: Engine | None = None
        self._settled = asyncio.Event()
        self.state = Readiness.ABSENT
        self.starts = 0
        self.message = ""

    @property
    def endpoint(self) -> Endpoint:
        """The administrator's endpoint; the same after every restart."""
        return self._running().endpoint

    @property
    def agent_endpoint(self) -> Endpoint:
        """The restricted user's endpoint; the same after every restart."""
        endpoint = self._running().agent_endpoint
        if endpoint is None:
            raise Terminal(f"engine {self._path}: it was started without a user for agents")
        return endpoint

    def start(self) -> None:
        """Begin to start it, unless that was begun."""
        if self._task is None:
            self.state = Readiness.STARTING
            self._task = asyncio.create_task(self._keep())

    async def ready(self) -> Endpoint:
        """Return the administrator's endpoint once it first answers.

        Raises:
            Terminal: it can't start.
        """
        await self._settled.wait()
        if self.state is Readiness.FAILED:
            raise Terminal(self.message)
        return self.endpoint

    async def close(self) -> None:
        """Stop it."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self.state = Readiness.ABSENT

    def _running(self) -> Engine:
        if self._engine is None:
            raise Terminal(f"engine {self._path}: it is not running")
        return self._engine

    async def _keep(self) -> None:
        try:
            why = ""
            while self.starts < _MAX_STARTS:
                self.starts += 1
                why = await self._serve()
            self.message = f"{why}; started {self.starts} times; see {self._log}"
        except Terminal as error:
            self.message = str(error)
        self.state = Readiness.FAILED
        self._settled.set()
        self._notify()

    async def _serve(self) -> str:
        """Start it, and return once it has ended, with why."""
        before = self._engine
        await self._outlast_readers()
        try:
            async with Engine.start(
                self._path, log=self._log, access=self._access, limits=self._limits, again=before
            ) as engine:
                self._engine = engine
                self.state = Readiness.READY
                self._settled.set()
                self._notify()
                await engine.wait()
        except Retryable as error:
            return str(error)
        return f"engine {self._path}: it ended"

    async def _outlast_readers(self) -> None:
        """Let commands end that serve this folder themselves, because no run did when they began to read it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_READERS_SECONDS):
                while is_served(self._path):  # noqa: ASYNC110 - another process holds the lock; it sets no event
                    await asyncio.sleep(_POLL_SECONDS)
