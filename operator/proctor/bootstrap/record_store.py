"""Where the gateway's record goes: through a spool on disk into the results store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.results import RecordBatch, ResultsStore
from proctor.adapters.clickhouse.spool import SpooledWriter
from proctor.bootstrap.gateway_config import GatewayConfig, StoreLogin
from proctor.core.ids import AttemptKey
from proctor.core.trajectory.events import Event
from proctor.core.trajectory.outcome import AttemptRecord
from proctor.errors import Retryable

logger = logging.getLogger("proctor.gateway")

_LOOK_SECONDS = 0.02

_TRIES, _TRIES_IN_POD, _PAUSE_SECONDS = 6, 100, 1.0
"""A pod's way out may open only after the pod has started, and a ClickHouse of the cluster may be restarting: a new
gateway would only be later.
"""


class NoStore:
    """Takes the record and keeps nothing: for trying a suite's servers out."""

    def submit(
        self,
        *,
        events: Sequence[tuple[AttemptKey, Event]] = (),
        blobs: Mapping[str, bytes] | None = None,
        attempts: Sequence[AttemptRecord] = (),
    ) -> None:
        """Take rows and bodies."""

    async def settled(self, key: AttemptKey) -> None:
        """Return at once."""


class SpoolSink:
    """Takes the record into a spool."""

    def __init__(self, writer: SpooledWriter) -> None:
        self._writer = writer

    def submit(
        self,
        *,
        events: Sequence[tuple[AttemptKey, Event]] = (),
        blobs: Mapping[str, bytes] | None = None,
        attempts: Sequence[AttemptRecord] = (),
    ) -> None:
        """Take rows and bodies; they are on disk when this returns."""
        self._writer.submit(RecordBatch(events=tuple(events), blobs=dict(blobs or {}), attempts=tuple(attempts)))

    async def settled(self, key: AttemptKey) -> None:
        """Return when the store has acknowledged all of an attempt."""
        await self._writer.settled(key)


Sink = NoStore | SpoolSink


@dataclass(frozen=True, slots=True)
class Before:
    """What the store has of a run when its gateway starts.

    Attributes:
        ended: attempts that ended, in that order.
        begun: attempts that anything was recorded of, those that ended among them.
    """

    ended: tuple[AttemptRecord, ...] = ()
    begun: tuple[AttemptKey, ...] = ()


async def open_sink(config: GatewayConfig, stack: AsyncExitStack) -> tuple[Sink, Before]:
    """Open the store and its spool until the stack unwinds; return also what earlier gateways of the run left.

    What an earlier gateway left in the spool is stored first: an attempt of it that had ended counts as ended.

    Raises:
        Retryable: the store does not answer.
        Terminal: the store or the spool can't be used.
    """
    if config.store is None:
        return NoStore(), Before()
    store = ResultsStore(_endpoint(config.store), config.store.database)
    stack.push_async_callback(store.close)
    await _migrate(store, tries=_TRIES if config.listen is None else _TRIES_IN_POD)
    writer = SpooledWriter(store, config.spool_dir)
    await writer.start()
    stack.push_async_callback(writer.close)
    while writer.waiting_batches:  # noqa: ASYNC110 - a spool tells a count, not an event
        await asyncio.sleep(_LOOK_SECONDS)
    earlier = sorted(await store.attempts(config.run), key=lambda record: record.ended)
    return SpoolSink(writer), Before(tuple(earlier), await store.begun(config.run))


async def _migrate(store: ResultsStore, *, tries: int) -> None:
    for _ in range(tries - 1):
        try:
            return await store.migrate()
        except Retryable as error:
            logger.warning("the store is away", extra={"problem": str(error)})
            await asyncio.sleep(_PAUSE_SECONDS)
    return await store.migrate()


def _endpoint(login: StoreLogin) -> Endpoint:
    return Endpoint(
        host=login.host,
        port=login.port,
        user=login.user,
        password=login.password.get_secret_value(),
        secure=login.secure,
    )
