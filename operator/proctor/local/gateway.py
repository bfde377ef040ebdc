"""The gateway's process: started, watched, spoken to, and started again when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.adapters.control import POLL_SECONDS, Door, GatewayControl, OpenProgress
from proctor.core.ids import AttemptKey
from proctor.core.trajectory.outcome import AttemptRecord, ProcessExit
from proctor.errors import InvalidInput, ProctorError, Retryable, Terminal
from proctor.local.background import Background
from proctor.local.children import Child
from proctor.reconcile.observed import GatewaySeen, ProbeSeen, Readiness

_START_SECONDS = 60.0
_PROBE_SECONDS = 600.0
"""A start, a hook, a greeting, a list and three calls of a minute each, and some servers have to wait for others."""
_STOP_SECONDS = 15.0
"""A gateway that is told to end first ends its servers and flushes its record."""

_PROGRESS_SECONDS = 1.0
_RETRY_SECONDS = 0.5
_USAGE = 64


@dataclass(slots=True)
class _Incarnation:
    """One life of the gateway's process."""

    number: int
    child: Child | None = None
    control: GatewayControl | None = None
    ready: bool = False
    probes: tuple[ProbeSeen, ...] | None = None
    probing: bool = False
    progress: dict[str, OpenProgress] = field(default_factory=dict)


class Gateway:
    """Keeps at most one gateway process of a run.

    Args:
        build_config: returns the gateway's configuration but for what is drawn here; called for every start.
        sockets_root: a folder with a short path; each start gets a folder in it.
        log: takes its standard error.
        background: runs what goes on beside the passes.
    """

    def __init__(
        self,
        build_config: Callable[[], Awaitable[Mapping[str, Any]]],
        *,
        sockets_root: Path,
        log: Path,
        background: Background,
    ) -> None:
        self._build_config = build_config
        self._sockets_root = sockets_root
        self._log = log
        self._background = background
        self._life: _Incarnation | None = None
        self._starts = 0
        self._message = ""
        self._ended: dict[AttemptKey, AttemptRecord] = {}
        self._task: asyncio.Task[None] | None = None
        self._run_key = secrets.token_hex(32)
        self.faults: list[Terminal] = []

    @property
    def incarnation(self) -> int:
        """Which start the living process is of; 0 while there is none that is ready."""
        return self._life.number if self._life is not None and self._life.ready else 0

    @property
    def ended(self) -> tuple[AttemptRecord, ...]:
        """Every attempt that any life of the gateway listed as ended."""
        return tuple(self._ended.values())

    @property
    def probes(self) -> tuple[ProbeSeen, ...] | None:
        """What the living process's probe found."""
        return None if self._life is None else self._life.probes

    @property
    def probing(self) -> bool:
        """A probe is going on."""
        return self._life is not None and self._life.probing

    def progress_of(self, key: AttemptKey) -> OpenProgress:
        """Return how far an open attempt is; zeros if nothing is known yet."""
        known = {} if self._life is None else self._life.progress
        return known.get(key.opaque_id, OpenProgress())

    def observe(self) -> GatewaySeen:
        """Return what the process is like now."""
        if self._life is None:
            return GatewaySeen(state=Readiness.ABSENT, starts=self._starts, message=self._message)
        state = Readiness.READY if self._life.ready else Readiness.STARTING
        return GatewaySeen(state=state, starts=self._starts, message=self._message)

    def start(self) -> None:
        """Begin to start a process, unless there is one."""
        if self._life is None:
            self._starts += 1
            self._life = _Incarnation(self._starts)
            self._task = self._background.spawn(self._live(self._life))

    def probe(self) -> None:
        """Begin to probe the servers, unless that is done or going on."""
        life = self._life
        if life is not None and life.ready and life.probes is None and not life.probing:
            life.probing = True
            self._background.spawn(self._probe(life))

    async def open(self, key: AttemptKey, *, deadline_seconds: int) -> tuple[int, Door]:
        """Open an attempt; return the incarnation that it belongs to and its door.

        Raises:
            Retryable: the gateway can't be reached.
            InvalidInput: it refuses.
        """
        life, control = self._living()
        return life.number, await control.open(key, deadline_seconds=deadline_seconds)

    async def end(self, key: AttemptKey, exit_: ProcessExit) -> None:
        """Tell how an attempt's process ended.

        Raises:
            Retryable: the gateway can't be reached.
            InvalidInput: it knows no such open attempt.
        """
        _, control = self._living()
        await control.end(key, exit_)

    async def stop(self) -> None:
        """End the process; what it recorded is in the store or in the spool."""
        life = self._life
        if life is not None and life.child is not None:
            await life.child.stop(patience=_STOP_SECONDS)
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def _living(self) -> tuple[_Incarnation, GatewayControl]:
        life = self._life
        if life is None or not life.ready or life.control is None:
            raise Retryable("speaking to the gateway: it is not running")
        return life, life.control

    async def _live(self, life: _Incarnation) -> None:
        try:
            await self._run(life)
        except (Terminal, InvalidInput) as error:
            self.faults.append(Terminal(str(error)))
        except TimeoutError:
            self._message = f"it did not get ready within {_START_SECONDS:.0f} s"
        except ProctorError as error:
            self._message = str(error)
        finally:
            if life.child is not None:
                await life.child.stop(patience=1.0)
                self._message = life.child.last_words() or self._message
                if life.child.exit_code == _USAGE:
                    # It was told something that it refuses; it would refuse it again.
                    self.faults.append(Terminal(f"starting the gateway: {self._message}"))
            if life.control is not None:
                await life.control.close()
            self._life = None
            self._background.notify()

    async def _run(self, life: _Incarnation) -> None:
        token = secrets.token_hex(32)
        sockets = self._sockets_root / f"g{life.number}"
        sockets.mkdir(mode=0o700)
        config = {
            **await self._build_config(),
            "runKey": self._run_key,
            "operatorToken": token,
            "socketsDir": str(sockets),
        }
        life.child = await Child.start("proctor.gateway", config, log=self._log)
        async with asyncio.timeout(_START_SECONDS):
            line = await life.child.read_line()
        control = _parse_ready(line)
        life.control = GatewayControl(control, token)
        count = await self._follow_once(life, 0, wait=0)
        life.ready = True
        self._background.notify()
        following = asyncio.create_task(self._follow(life, count))
        watching = asyncio.create_task(self._watch(life))
        try:
            await life.child.wait()
        finally:
            for task in (following, watching):
                task.cancel()
            await asyncio.gather(following, watching, return_exceptions=True)

    async def _follow(self, life: _Incarnation, count: int) -> None:
        while True:
            try:
                count = await self._follow_once(life, count, wait=POLL_SECONDS)
            except (Retryable, InvalidInput, Terminal):
                await asyncio.sleep(_RETRY_SECONDS)

    async def _follow_once(self, life: _Incarnation, count: int, *, wait: int) -> int:
        if life.control is None:
            return count
        records = await life.control.list_ended(count, wait=wait)
        for record in records:
            self._ended.setdefault(record.key, record)
        if records:
            self._background.notify()
        return count + len(records)

    async def _watch(self, life: _Incarnation) -> None:
        while life.control is not None:
            with contextlib.suppress(Retryable, InvalidInput, Terminal):
                life.progress = await life.control.read_progress()
            await asyncio.sleep(_PROGRESS_SECONDS)

    async def _probe(self, life: _Incarnation) -> None:
        if life.control is None:
            return
        try:
            life.probes = await life.control.probe(patience=_PROBE_SECONDS)
        except (Retryable, InvalidInput, Terminal) as error:
            self._message = str(error)
            if life.child is not None and life.child.exit_code is None:
                # It lives but doesn't answer: a new one may; the bound on starts ends a loop.
                await life.child.stop(patience=1.0)
        finally:
            life.probing = False


def _parse_ready(line: bytes) -> Path:
    try:
        return Path(json.loads(line)["control"])
    except (ValueError, KeyError, TypeError) as e:
        raise Retryable("starting the gateway: it ended before it was ready") from e
