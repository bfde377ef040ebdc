"""Batches as they lie in a spool file."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.adapters.clickhouse.results import RecordBatch
from proctor.adapters.clickhouse.spool_codec import (
    SpoolDamage,
    SpooledRecord,
    decode_record,
    decode_records,
    encode_batch,
)
from proctor.core.digests import digest_bytes
from proctor.core.ids import AttemptKey, CellKey
from proctor.core.trajectory.events import Event, EventKind, Status
from proctor.core.trajectory.outcome import AnswerSource, AttemptRecord, Limit, Outcome
from proctor.errors import InvalidInput
from support.results import make_attempt, make_batch, make_event, make_key

# Any text at all: lone surrogates and NUL come from hostile servers.
TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=40)
COUNT = st.integers(0, 2**32 - 1)
BIG = st.integers(0, 2**64 - 1)
USD = st.none() | st.decimals(min_value=0, max_value=10**12, places=18)
INSTANT = st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis adds the zone
KEY = st.builds(
    AttemptKey,
    run=TEXT,
    cell=st.builds(CellKey, scenario=TEXT, server=TEXT, model=TEXT, replicate=COUNT),
    attempt=st.integers(1, 2**16 - 1),
)


def _strategy(record: type[Any], **chosen: Any) -> st.SearchStrategy[Any]:
    """Fields by their annotation, except those chosen."""
    by_type = {"int": COUNT, "str": TEXT, "Decimal | None": USD, "datetime": INSTANT}
    return st.builds(
        record,
        **{name: chosen[name] if name in chosen else by_type[note] for name, note in record.__annotations__.items()},
    )


EVENT = _strategy(Event, kind=st.sampled_from(EventKind), status=st.sampled_from(Status), latency_us=BIG)
ATTEMPT = _strategy(
    AttemptRecord,
    key=KEY,
    outcome=st.sampled_from(Outcome),
    limit=st.none() | st.sampled_from(Limit),
    answer_source=st.sampled_from(AnswerSource),
)
BLOBS = st.lists(st.binary(max_size=50)).map(lambda bodies: {digest_bytes(body): body for body in bodies})
BATCH = st.builds(
    RecordBatch,
    events=st.lists(st.tuples(KEY, EVENT), max_size=4).map(tuple),
    blobs=BLOBS,
    attempts=st.lists(ATTEMPT, max_size=3).map(tuple),
)


@given(st.lists(BATCH, max_size=4))
def test_batches_come_back_exactly(batches: list[RecordBatch]) -> None:
    """M-D6: what was spooled is what is stored later, to the last microsecond and digit."""
    content = b"".join(encode_batch(batch) for batch in batches)
    read = [item.batch for item in decode_records(content) if isinstance(item, SpooledRecord)]
    assert read == batches


@given(st.integers(min_value=0))
def test_a_record_cut_at_any_byte_is_left_out(cut: int) -> None:
    """M-D6: a process that dies while writing loses nothing that was written before."""
    first, second = encode_batch(make_batch(bodies=(b"body",))), encode_batch(make_batch(seq=2, bodies=(b"other",)))
    content = first + second[: cut % len(second)]
    [record] = decode_records(content)
    assert isinstance(record, SpooledRecord)
    assert record.end == len(first)


@given(st.integers(min_value=0), st.integers(1, 255))
def test_a_changed_byte_is_noticed(position: int, flip: int) -> None:
    """M-D6: a damaged record is never taken for a good one."""
    record = bytearray(encode_batch(make_batch(bodies=(b"body",))))
    record[position % len(record)] ^= flip
    # None where its length was hit: it looks unfinished.
    assert not isinstance(decode_record(bytes(record)), SpooledRecord)


def test_records_after_a_damaged_one_are_read() -> None:
    """M-D6: one bad sector costs one record."""
    records = [encode_batch(make_batch(seq=seq)) for seq in (1, 2, 3)]
    damaged = bytearray(records[1])
    damaged[-1] ^= 1
    read = list(decode_records(records[0] + bytes(damaged) + records[2]))
    assert [isinstance(item, SpoolDamage) for item in read] == [False, True, False]


def test_what_is_not_a_spool_is_damage() -> None:
    """M-D6: a stranger's file is not read as rows."""
    [damage] = decode_records(b"not a spool at all, whatever its name says")
    assert isinstance(damage, SpoolDamage)
    assert damage.resume is None


@pytest.mark.parametrize(
    "event",
    [make_event(latency_us=-1), make_event(usd=Decimal("1E-19")), make_event(retry=2**32)],
    ids=["negative", "price", "wide"],
)
def test_a_value_that_could_never_be_stored_is_refused_at_once(event: Event) -> None:
    """M-D6: a batch that the store would refuse for ever would block all that come after it."""
    with pytest.raises(InvalidInput, match="event 1 of"):
        encode_batch(RecordBatch(events=((make_key(), event),)))


def test_attempts_are_checked_too() -> None:
    """M-D6: as for events."""
    with pytest.raises(InvalidInput, match="turns"):
        encode_batch(RecordBatch(attempts=(make_attempt(turns=-1),)))
    with pytest.raises(InvalidInput, match="SHA-256"):
        encode_batch(RecordBatch(blobs={"short": b""}))
