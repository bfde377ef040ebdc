"""What is recorded goes to disk first and to the store from there, so that no death of either loses a row.

`submit` appends a batch to a spool file and returns. One task reads the files from the oldest on, writes what it finds
to the store, and removes each file once the store has acknowledged all of it. There is no other way into the store:
what a dead process left is read in the same way as what this one wrote a moment ago. A batch whose acknowledgement was
lost is written again, which the store's readers don't see.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from proctor.adapters.clickhouse.results_rows import RecordBatch
from proctor.adapters.clickhouse.spool_codec import encode_batch
from proctor.adapters.clickhouse.spool_files import ReadStretch, SpoolFiles, SpoolFull, Stretch, read_stretch
from proctor.core.ids import AttemptKey
from proctor.errors import InvalidInput, ProctorError, Retryable, Terminal

__all__ = ["SpoolFull", "SpoolLimits", "SpooledWriter"]

_log = logging.getLogger(__name__)

_FIRST_DELAY = 0.1
_REST = 3
"""So many times as long as the last write took, batches wait for company: a store that is busy gets fewer, larger
writes. At most so many times as long as is set."""

_REMEMBERED_DIGESTS = 50_000
"""Of bodies that this process stored lately: prompts and tool lists recur in every attempt."""


class BatchStore(Protocol):
    """What acknowledges batches: the results store."""

    async def write(self, batch: RecordBatch) -> None:
        """Return once the batch is stored; repeating it changes nothing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolLimits:
    """When a spool writes, and how much may wait.

    Attributes:
        linger_seconds: how long a batch waits for company: a write costs the store the same however little is in it,
            and merges afterwards besides. No agent waits for it: new ones start while ended attempts do.
        batch_bytes: when that much waits, it is written at once.
        segment_bytes: size of a spool file, and so of the largest write.
        capacity_bytes: how much may wait altogether before `submit` refuses.
        longest_delay: seconds between tries while the store is away.
    """

    linger_seconds: float = 1.0
    batch_bytes: int = 1 << 20
    segment_bytes: int = 8 << 20
    capacity_bytes: int = 2 << 30
    longest_delay: float = 10.0


class SpooledWriter:
    """Takes batches at any time and gets them into the store in order.

    All calls belong on one event loop. Use `start` before anything else, and `close` at the end.

    Args:
        store: where batches go.
        directory: of the spool files; one process at a time may use it.
        limits: sizes and times.
    """

    def __init__(self, store: BatchStore, directory: Path, limits: SpoolLimits | None = None) -> None:
        self._store = store
        self._limits = limits or SpoolLimits()
        self._files = SpoolFiles(
            directory, segment_bytes=self._limits.segment_bytes, capacity_bytes=self._limits.capacity_bytes
        )
        self._submitted = 0  # batches taken, counted from the oldest left on disk
        self._stored = 0  # of them, how many the store has acknowledged
        self._newest: dict[AttemptKey, int] = {}  # the number of the newest unstored batch of an attempt
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._known_digests: OrderedDict[str, None] = OrderedDict()
        self._position = 0  # in the oldest file: a write has taken what lies before it
        self._linger = self._limits.linger_seconds
        self._has_work = asyncio.Event()
        self._is_urgent = asyncio.Event()
        self._is_closing = asyncio.Event()
        self._failure: ProctorError | None = None
        self._flushing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take the folder, and begin to store what an earlier process left in it.

        Raises:
            Terminal: another process uses the folder, or it can't be used.
        """
        leftovers = self._files.open()
        for stretch in leftovers:
            self._count(record.batch for record in (await asyncio.to_thread(read_stretch, stretch)).records)
        if leftovers:
            self._has_work.set()
            self._is_urgent.set()
        self._flushing = asyncio.create_task(self._flush_for_ever(), name="spool")
        self._flushing.add_done_callback(self._note_end)

    def submit(self, batch: RecordBatch) -> None:
        """Take a batch; returns once it would survive the death of this process.

        Raises:
            InvalidInput: it holds a value that the store can't hold.
            SpoolFull: the disk is full, or the store has been away for too long.
            Terminal: the store refuses all writes, or the disk failed.
        """
        if self._failure:
            raise self._failure
        if not batch.row_count:
            return
        self._files.append(encode_batch(batch))
        self._count([batch])
        self._has_work.set()
        if self.untaken_bytes >= self._limits.batch_bytes:
            self._is_urgent.set()

    async def settled(self, key: AttemptKey) -> None:
        """Return once the store has acknowledged every row of an attempt that was submitted so far.

        Raises:
            Terminal: the store refuses all writes; the rows stay in the spool.
        """
        number = self._newest.get(key)
        if number is None:
            return
        if self._failure:
            raise self._failure
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((number, future))
        await future

    @property
    def waiting_batches(self) -> int:
        """How many batches the store has not acknowledged yet."""
        return self._submitted - self._stored

    @property
    def untaken_bytes(self) -> int:
        """How much waits that no write has begun with."""
        return self._files.waiting_bytes - self._position

    async def close(self, *, patience_seconds: float = 10.0) -> None:
        """Store what waits if the store answers in time, and let go of the folder; the rest waits for the next start.

        Args:
            patience_seconds: how long a store may take that neither answers nor refuses.
        """
        self._is_closing.set()
        self._is_urgent.set()
        self._has_work.set()
        if self._flushing:
            done, late = await asyncio.wait({self._flushing}, timeout=patience_seconds)
            for task in late:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            for task in done:
                task.result()
        self._fail_waiting(Retryable("spool: closed before the results store acknowledged these rows"))
        self._files.close()

    def _count(self, batches: Iterable[RecordBatch]) -> None:
        for batch in batches:
            self._submitted += 1
            for key in batch.keys:
                self._newest[key] = self._submitted

    async def _flush_for_ever(self) -> None:
        try:
            await self._flush()
        except (Terminal, InvalidInput) as error:
            self._fail(error)
        except OSError as error:
            self._fail(Terminal(f"spool: reading back failed: {error.strerror}"))

    async def _flush(self) -> None:
        is_damaged = False
        while stretch := await self._next_stretch():
            read = await asyncio.to_thread(read_stretch, stretch)
            self._position, is_damaged = stretch.end, is_damaged or read.is_damaged
            if not await self._store_all(read):
                return
            self._acknowledge(read)
            if self._files.is_finished(stretch):
                self._files.discard(stretch.path, is_damaged=is_damaged)
                self._position, is_damaged = 0, False

    async def _next_stretch(self) -> Stretch | None:
        """Wait for something to store; None once there is nothing left and nothing more will come."""
        while not self._files.oldest(self._position):
            if self._is_closing.is_set():
                return None
            self._has_work.clear()
            await self._has_work.wait()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._is_urgent.wait(), self._linger)
        if not self._is_closing.is_set():
            self._is_urgent.clear()
        return self._files.oldest(self._position)

    async def _store_all(self, read: ReadStretch) -> bool:
        """Write until the store acknowledges; False if this writer is closed before."""
        batch = self._merge(record.batch for record in read.records)
        began = time.monotonic()
        delay = _FIRST_DELAY
        while batch.row_count:
            try:
                await self._store.write(batch)
            except Retryable as error:
                if self._is_closing.is_set():
                    return False
                if delay == _FIRST_DELAY:
                    _log.warning("results store does not answer; spooling", extra={"error": str(error)})
                    await asyncio.to_thread(self._files.sync)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._is_closing.wait(), delay)
                delay = min(delay * 2, self._limits.longest_delay)
            else:
                break
        self._remember(batch)
        least = self._limits.linger_seconds
        self._linger = max(least, min(_REST * (time.monotonic() - began), _REST * least))
        return True

    def _merge(self, batches: Iterable[RecordBatch]) -> RecordBatch:
        taken = tuple(batches)
        blobs = {
            digest: body for batch in taken for digest, body in batch.blobs.items() if digest not in self._known_digests
        }
        return RecordBatch(
            events=tuple(item for batch in taken for item in batch.events),
            blobs=blobs,
            attempts=tuple(record for batch in taken for record in batch.attempts),
        )

    def _remember(self, batch: RecordBatch) -> None:
        self._known_digests.update(dict.fromkeys(batch.blobs))
        while len(self._known_digests) > _REMEMBERED_DIGESTS:
            self._known_digests.popitem(last=False)

    def _acknowledge(self, read: ReadStretch) -> None:
        self._stored += len(read.records)
        for key in {key for record in read.records for key in record.batch.keys}:
            if self._newest[key] <= self._stored:
                del self._newest[key]
        still_waiting = []
        for number, future in self._waiting:
            if number > self._stored:
                still_waiting.append((number, future))
            elif not future.done():
                future.set_result(None)
        self._waiting = still_waiting

    def _note_end(self, flushing: asyncio.Task[None]) -> None:
        """A bug must not leave anybody waiting; `close` raises it."""
        if not flushing.cancelled() and (error := flushing.exception()):
            self._fail(Terminal(f"spool: the writer broke: {error!r}"))

    def _fail(self, error: ProctorError) -> None:
        _log.error("results store refuses writes; they stay in the spool", extra={"error": str(error)})
        self._failure = error
        self._fail_waiting(error)

    def _fail_waiting(self, error: ProctorError) -> None:
        waiting, self._waiting = self._waiting, []
        for _, future in waiting:
            if not future.done():
                future.set_exception(error)
