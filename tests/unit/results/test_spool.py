"""The spool between a recorder and a store that comes and goes."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from proctor.adapters.clickhouse.results import RecordBatch
from proctor.adapters.clickhouse.spool import SpooledWriter, SpoolFull, SpoolLimits
from proctor.adapters.clickhouse.spool_codec import encode_batch
from proctor.core.ids import AttemptKey
from proctor.errors import InvalidInput, ProctorError, Retryable, Terminal
from support.results import make_attempt, make_batch, make_blobs, make_event, make_key

QUICK = SpoolLimits(linger_seconds=0.0, longest_delay=0.1)


class MemoryStore:
    """A store that keeps batches, and fails when told to.

    Attributes:
        batches: what was acknowledged.
        failing: raised by the next writes.
        tried: set by every write.
    """

    def __init__(self) -> None:
        self.batches: list[RecordBatch] = []
        self.failing: ProctorError | None = None
        self.tried = asyncio.Event()

    async def write(self, batch: RecordBatch) -> None:
        self.tried.set()
        await asyncio.sleep(0)
        if self.failing:
            raise self.failing
        self.batches.append(batch)

    def sequence(self, key: AttemptKey) -> list[int]:
        return [event.seq for batch in self.batches for other, event in batch.events if other == key]


@contextlib.asynccontextmanager
async def running(store: MemoryStore, directory: Path, limits: SpoolLimits = QUICK) -> AsyncIterator[SpooledWriter]:
    writer = SpooledWriter(store, directory, limits)
    await writer.start()
    try:
        yield writer
    finally:
        await writer.close()


def spooled(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name != "lock")


async def test_batches_reach_the_store_in_order_and_leave_no_file(tmp_path: Path) -> None:
    """M-D6: `settled` means acknowledged; what is acknowledged needs no spool."""
    store, key = MemoryStore(), make_key()
    async with running(store, tmp_path) as writer:
        for seq in range(1, 101):
            writer.submit(make_batch(key, seq=seq))
        writer.submit(RecordBatch(attempts=(make_attempt(key),)))
        await writer.settled(key)
        assert store.sequence(key) == list(range(1, 101))
        assert writer.waiting_batches == 0
    assert spooled(tmp_path) == []


async def test_what_is_being_stored_hurries_nothing(tmp_path: Path) -> None:
    """M-D6: a write begins early for what waits, not for what an earlier write has taken from the same file."""
    store, key = MemoryStore(), make_key()
    first, second = make_batch(key), make_batch(key, seq=2)
    patient = SpoolLimits(linger_seconds=3600, batch_bytes=len(encode_batch(first)) + 1)
    async with running(store, tmp_path, patient) as writer:
        writer.submit(first)
        writer.submit(second)
        await store.tried.wait()
        writer.submit(make_batch(make_key(replicate=2)))
        assert writer.untaken_bytes < patient.batch_bytes
        await writer.settled(key)
        assert writer.waiting_batches == 1
    assert [len(batch.events) for batch in store.batches] == [2, 1]


async def test_nothing_submitted_is_settled_at_once(tmp_path: Path) -> None:
    """M-D6: an attempt without rows waits for nothing."""
    async with running(MemoryStore(), tmp_path) as writer:
        writer.submit(RecordBatch())
        await writer.settled(make_key())


async def test_an_attempt_is_not_settled_while_the_store_is_away(tmp_path: Path) -> None:
    """M-D6: rows wait on disk while ClickHouse is away, and arrive once each when it is back."""
    store, key = MemoryStore(), make_key()
    store.failing = Retryable("away")
    async with running(store, tmp_path) as writer:
        writer.submit(make_batch(key))
        settled = asyncio.create_task(writer.settled(key))
        await store.tried.wait()
        writer.submit(make_batch(key, seq=2))
        assert not settled.done()
        assert spooled(tmp_path)
        store.failing = None
        await settled
        await writer.settled(key)
        assert store.sequence(key) == [1, 2]


async def test_what_a_dead_process_left_is_stored_by_the_next(tmp_path: Path) -> None:
    """M-D6: a writer that ends while the store is away leaves its rows to whoever starts on its folder."""
    away, key = MemoryStore(), make_key()
    away.failing = Retryable("away")
    async with running(away, tmp_path) as writer:
        for seq in (1, 2, 3):
            writer.submit(make_batch(key, seq=seq))
    assert away.batches == []
    back = MemoryStore()
    async with running(back, tmp_path) as writer:
        writer.submit(make_batch(key, seq=4))
        await writer.settled(key)
        assert back.sequence(key) == [1, 2, 3, 4]
    assert spooled(tmp_path) == []


async def test_a_torn_last_record_is_dropped_and_the_rest_kept(tmp_path: Path) -> None:
    """M-D6: a process that died in the middle of a write loses only what it never reported as taken."""
    key = make_key()
    torn = encode_batch(make_batch(key, seq=2))[:-3]
    (tmp_path / "000000000007.spool").write_bytes(encode_batch(make_batch(key, seq=1)) + torn)
    (tmp_path / "000000000008.spool").write_bytes(b"")
    (tmp_path / "000000000009.spool").write_bytes(encode_batch(make_batch(key, seq=3)))
    store = MemoryStore()
    async with running(store, tmp_path) as writer:
        await writer.settled(key)
        assert store.sequence(key) == [1, 3]
    assert spooled(tmp_path) == []


async def test_a_damaged_file_is_kept_for_people(tmp_path: Path) -> None:
    """M-D6: what can be read is stored; what can't is never deleted, and not read again."""
    key = make_key()
    damaged = bytearray(encode_batch(make_batch(key, seq=2)))
    damaged[-1] ^= 1
    good = [encode_batch(make_batch(key, seq=seq)) for seq in (1, 3)]
    (tmp_path / "000000000001.spool").write_bytes(good[0] + bytes(damaged) + good[1])
    for _ in range(2):
        store = MemoryStore()
        async with running(store, tmp_path) as writer:
            writer.submit(make_batch(key, seq=4))
            await writer.settled(key)
        assert spooled(tmp_path) == ["000000000001.spool.damaged"]
    assert store.sequence(key) == [4]


async def test_a_refusal_is_reported_and_rows_stay(tmp_path: Path) -> None:
    """M-D6: a store that says no for ever is an error for whoever waits, not a silent loop."""
    store, key = MemoryStore(), make_key()
    store.failing = Terminal("no such table")
    async with running(store, tmp_path) as writer:
        writer.submit(make_batch(key))
        with pytest.raises(Terminal, match="no such table"):
            await writer.settled(key)
        with pytest.raises(Terminal, match="no such table"):
            writer.submit(make_batch(key))
    mended = MemoryStore()
    async with running(mended, tmp_path):
        pass
    assert mended.sequence(key) == [1]


async def test_waiters_hear_of_the_close(tmp_path: Path) -> None:
    """M-D6: nobody is left waiting for an acknowledgement that can't come."""
    store, key = MemoryStore(), make_key()
    store.failing = Retryable("away")
    writer = SpooledWriter(store, tmp_path, QUICK)
    await writer.start()
    writer.submit(make_batch(key))
    settled = asyncio.create_task(writer.settled(key))
    await store.tried.wait()
    await writer.close()
    with pytest.raises(Retryable, match="closed before"):
        await settled


async def test_a_store_that_hangs_does_not_hold_up_the_close(tmp_path: Path) -> None:
    """M-D6: a shutdown ends, and its rows wait for the next start."""

    class HangingStore(MemoryStore):
        async def write(self, batch: RecordBatch) -> None:
            self.tried.set()
            await asyncio.Event().wait()
            self.batches.append(batch)

    store, key = HangingStore(), make_key()
    writer = SpooledWriter(store, tmp_path, QUICK)
    await writer.start()
    writer.submit(make_batch(key))
    await store.tried.wait()
    await writer.close(patience_seconds=0.01)
    back = MemoryStore()
    async with running(back, tmp_path):
        pass
    assert back.sequence(key) == [1]


async def test_two_processes_can_not_share_a_folder(tmp_path: Path) -> None:
    """M-D6: else each would remove the other's files."""
    async with running(MemoryStore(), tmp_path):
        with pytest.raises(Terminal, match="another process"):
            await SpooledWriter(MemoryStore(), tmp_path).start()


async def test_a_spool_that_waits_too_long_refuses_more(tmp_path: Path) -> None:
    """Faults, full disk: a store that stays away fills a bounded part of the disk."""
    store, key = MemoryStore(), make_key()
    store.failing = Retryable("away")
    small = SpoolLimits(linger_seconds=0.0, capacity_bytes=4000, segment_bytes=1000)
    taken = 0
    async with running(store, tmp_path, small) as writer:
        refusal = ""
        while not refusal:
            try:
                writer.submit(make_batch(key, seq=taken + 1))
                taken += 1
            except SpoolFull as error:
                refusal = str(error)
        assert "4000 is the limit: bring the store back" in refusal
        assert taken > 1
        store.failing = None
        await writer.settled(key)
        writer.submit(make_batch(key, seq=taken + 1))
        await writer.settled(key)
    assert store.sequence(key) == list(range(1, taken + 2))


@pytest.fixture
def full_disk() -> Iterator[None]:
    """No file of this process may grow beyond 20 kB: the kernel refuses as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("full_disk")
async def test_a_full_disk_is_a_clear_error_and_loses_nothing_taken(tmp_path: Path) -> None:
    """Faults, full disk: the refused batch is the caller's to report; every one taken before and after is stored."""
    store, key = MemoryStore(), make_key()
    store.failing = Retryable("away")
    async with running(store, tmp_path) as writer:
        writer.submit(make_batch(key, seq=1))
        with pytest.raises(SpoolFull, match="no room on the disk"):
            writer.submit(make_batch(key, seq=2, bodies=(b"x" * 30_000,)))
        writer.submit(make_batch(key, seq=3, bodies=(b"fits",)))
        store.failing = None
        await writer.settled(key)
    assert store.sequence(key) == [1, 3]


async def test_a_value_that_can_not_be_stored_blocks_nobody(tmp_path: Path) -> None:
    """M-D6: it is refused at the door."""
    store, key = MemoryStore(), make_key()
    async with running(store, tmp_path) as writer:
        with pytest.raises(InvalidInput):
            writer.submit(RecordBatch(events=((key, make_event(1, retry=-1)),)))
        writer.submit(make_batch(key))
        await writer.settled(key)
    assert store.sequence(key) == [1]


async def test_a_body_is_stored_once(tmp_path: Path) -> None:
    """M-B2: bodies that recur in every attempt travel once."""
    store = MemoryStore()
    async with running(store, tmp_path) as writer:
        for attempt in (1, 2, 3):
            writer.submit(make_batch(make_key(attempt=attempt), bodies=(b"system prompt",)))
            await writer.settled(make_key(attempt=attempt))
    [digest] = make_blobs(b"system prompt")
    assert [digest in batch.blobs for batch in store.batches] == [True, False, False]
