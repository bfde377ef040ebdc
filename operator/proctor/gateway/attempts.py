"""The attempts of a run: which are open, and which have ended for good."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import NamedTuple

from proctor.core.gatewaypolicy.refusal import RefusalCode, Refused
from proctor.core.gatewaypolicy.tokens import build_token
from proctor.core.ids import AttemptKey, CellKey
from proctor.core.trajectory.events import EventKind
from proctor.core.trajectory.outcome import AttemptRecord, ProcessExit
from proctor.errors import InvalidInput, ProctorError, Terminal
from proctor.gateway.attempt import Attempt
from proctor.gateway.context import GatewayContext
from proctor.gateway.listeners import Listeners
from proctor.gateway.model_side import ProviderSide
from proctor.gateway.opening import build_attempt
from proctor.gateway.ports import Closable

logger = logging.getLogger(__name__)


class OpenedAttempt(NamedTuple):
    """What an executor needs to start the sandbox of an attempt."""

    id: str
    token: str
    socket: str


class Attempts:
    """Opens and ends attempts; lists them as ended only once the store has acknowledged all their rows.

    Args:
        context: the parts of the gateway.
        listeners: opens and closes the attempts' sockets.
        earlier: attempts of this run that the store already has, in the order in which they ended.
        begun: attempts of this run that the store has anything of, ended or not.

    Attributes:
        problem: why the record can't be kept; empty while it can.
    """

    def __init__(
        self,
        context: GatewayContext,
        listeners: Listeners,
        *,
        earlier: Iterable[AttemptRecord] = (),
        begun: Iterable[AttemptKey] = (),
    ) -> None:
        self.problem = ""
        self._context = context
        self._listeners = listeners
        self._open: dict[str, Attempt] = {}
        self._ended: list[AttemptRecord] = list(earlier)
        ended = {record.key.opaque_id for record in self._ended}
        self._voided = {key.opaque_id for key in begun} - ended
        self._used = ended | self._voided
        self._changed = asyncio.Condition()
        self._settling: set[asyncio.Task[None]] = set()
        self._ending: set[str] = set()

    @property
    def open_attempts(self) -> dict[str, Attempt]:
        """The open attempts by their opaque ids."""
        return dict(self._open)

    @property
    def settling(self) -> list[str]:
        """Opaque ids of attempts that are open no more, and whose rows the store has not acknowledged yet."""
        return sorted(self._ending)

    @property
    def voided(self) -> list[str]:
        """Opaque ids of attempts that were open when an earlier gateway of this run ended: their numbers are used."""
        return sorted(self._voided)

    def find(self, opaque_id: str) -> Attempt | None:
        """Return an open attempt."""
        return self._open.get(opaque_id)

    def note_malformed(self, opaque_id: str) -> None:
        """Record that bytes which are no HTTP came through an attempt's socket (S15)."""
        attempt = self._open.get(opaque_id)
        if attempt is not None:
            attempt.deny(Refused(RefusalCode.MALFORMED, "no HTTP request", status=400))

    async def open(self, cell: CellKey, attempt: int, *, deadline_seconds: int) -> OpenedAttempt:
        """Open an attempt and its socket; one that is open and of which nothing was heard is told again.

        Raises:
            InvalidInput: the suite has no such cell, or this attempt was opened before.
            Terminal: its socket can't be made.
        """
        key = AttemptKey(self._context.run, cell, attempt)
        known = self._open.get(key.opaque_id)
        if known is not None and known.source is None:
            # Whoever asked may have died before the answer reached it.
            return self._describe(known)
        if key.opaque_id in self._used:
            raise InvalidInput(f"opening attempt {key}: it was opened before; a new try needs a new number")
        opened = build_attempt(self._context, key, deadline_seconds=deadline_seconds)
        self._used.add(key.opaque_id)
        try:
            await self._listeners.open(key.opaque_id)
        except OSError as error:
            await _close_sides(opened)
            raise Terminal(f"opening attempt {key}: its socket can't be made: {error.strerror}") from error
        opened.record(kind=EventKind.ATTEMPT_OPENED)
        self._open[key.opaque_id] = opened
        logger.info("attempt opened", extra=_names(key))
        return self._describe(opened)

    async def end(self, opaque_id: str, process: ProcessExit) -> None:
        """End an attempt: its token and socket hold no longer, and what it started is gone.

        Raises:
            InvalidInput: no such attempt is open.
            ProctorError: its record can't be kept.
        """
        attempt = self._open.pop(opaque_id, None)
        if attempt is None:
            raise InvalidInput(f"ending attempt {opaque_id!r}: no such attempt is open")
        self._ending.add(opaque_id)
        await self._listeners.close(opaque_id)
        await _close_sides(attempt)
        record = attempt.close(process, ended=self._context.clock())
        try:
            self._context.sink.submit(attempts=(record,))
        except ProctorError as error:
            self.problem = str(error)
            raise
        logger.info("attempt ended", extra=_names(attempt.key) | {"outcome": record.outcome})
        task = asyncio.create_task(self._list_when_settled(record))
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def ended_after(self, count: int, *, wait_seconds: float) -> list[AttemptRecord]:
        """Return the ended attempts but the first ``count``; wait for one if there is none yet."""
        async with self._changed:
            try:
                async with asyncio.timeout(wait_seconds):
                    await self._changed.wait_for(lambda: len(self._ended) > count)
            except TimeoutError:
                return []
            return self._ended[count:]

    async def void(self) -> None:
        """Drop every open attempt without a record: the gateway stops, so they count as never ended."""
        for task in list(self._settling):
            task.cancel()
        await asyncio.gather(*self._settling, return_exceptions=True)
        while self._open:
            opaque_id, attempt = self._open.popitem()
            await self._listeners.close(opaque_id)
            await _close_sides(attempt)

    def _describe(self, attempt: Attempt) -> OpenedAttempt:
        opaque_id = attempt.key.opaque_id
        token = build_token(self._context.run_key, attempt.spec.claims)
        return OpenedAttempt(opaque_id, token, str(self._listeners.path(opaque_id)))

    async def _list_when_settled(self, record: AttemptRecord) -> None:
        try:
            await self._context.sink.settled(record.key)
        except ProctorError as error:
            # Never listed as ended: whoever runs this gateway reads why, and may start another on the same spool.
            logger.exception("the store refuses the record", extra=_names(record.key))
            self.problem = str(error)
            return
        async with self._changed:
            self._ended.append(record)
            self._ending.discard(record.key.opaque_id)
            self._changed.notify_all()


async def _close_sides(attempt: Attempt) -> None:
    sides: list[Closable] = [attempt.toolbox] if attempt.toolbox is not None else []
    if isinstance(attempt.model, ProviderSide):
        sides.append(attempt.model.provider)
    # One that fails to close must keep neither the other open nor the attempt from ending.
    for failure in await asyncio.gather(*(side.close() for side in sides), return_exceptions=True):
        if isinstance(failure, Exception):
            logger.error("closing failed", extra=_names(attempt.key) | {"problem": type(failure).__name__})


def _names(key: AttemptKey) -> dict[str, str | int]:
    return {"run": key.run, "cell": str(key.cell), "attempt": key.attempt}
