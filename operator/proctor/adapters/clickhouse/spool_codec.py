"""How a batch lies in a spool file: a length, a checksum, a JSON header, then the bodies as they are.

A process may die at any byte of a write, so a file may end in the middle of a record: the length says so. A disk may
lie: the checksum says so. Values are written by name, so that a later version of Proctor reads what an earlier left.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from typing import Any

from proctor.adapters.clickhouse.results_rows import RecordBatch, check_batch
from proctor.clock import format_instant, parse_instant
from proctor.core.ids import AttemptKey, CellKey
from proctor.core.trajectory.events import Event, EventKind, Status
from proctor.core.trajectory.outcome import AnswerSource, AttemptRecord, Limit, Outcome

_MAGIC = b"PSP1"
_FRAME = struct.Struct("<4sIQI")  # magic, bytes of the header, bytes of the bodies, CRC-32 over both
_EVENT_FIELDS = tuple(item.name for item in fields(Event))
_ATTEMPT_FIELDS = tuple(item.name for item in fields(AttemptRecord) if item.name != "key")
_INSTANTS = frozenset({"ts", "opened", "ended"})
_ENUMS: dict[str, Any] = {
    "kind": EventKind,
    "status": Status,
    "outcome": Outcome,
    "limit": Limit,
    "answer_source": AnswerSource,
}


@dataclass(frozen=True, slots=True)
class SpooledRecord:
    """One batch read back, and where in its file the next one begins."""

    batch: RecordBatch
    end: int


@dataclass(frozen=True, slots=True)
class SpoolDamage:
    """A record that is all there and not what was written.

    Attributes:
        offset: where in its file it begins.
        resume: where the next record begins; None if that can't be known.
    """

    offset: int
    resume: int | None


def encode_batch(batch: RecordBatch) -> bytes:
    """Return a batch as one record.

    Raises:
        InvalidInput: a value that the store couldn't hold; found here, where whoever made it can still be told.
    """
    check_batch(batch)
    keys = sorted(batch.keys)
    index = {key: position for position, key in enumerate(keys)}
    header = {
        "keys": [[key.run, *_cell_values(key.cell), key.attempt] for key in keys],
        "events": [[index[key], _event_values(event)] for key, event in batch.events],
        "attempts": [[index[record.key], _values(record, _ATTEMPT_FIELDS)] for record in batch.attempts],
        "blobs": [[digest, len(body)] for digest, body in batch.blobs.items()],
    }
    # ASCII with escapes: the one form of JSON in which lone surrogates survive.
    head = json.dumps(header, separators=(",", ":"), ensure_ascii=True).encode("ascii")
    bodies = b"".join(batch.blobs.values())
    return _FRAME.pack(_MAGIC, len(head), len(bodies), zlib.crc32(bodies, zlib.crc32(head))) + head + bodies


def decode_record(content: bytes, start: int = 0) -> SpooledRecord | SpoolDamage | None:
    """Read the record that begins at `start`; None if the content ends before it does."""
    if len(content) - start < _FRAME.size:
        return None
    magic, head_size, bodies_size, checksum = _FRAME.unpack_from(content, start)
    if magic != _MAGIC:
        return SpoolDamage(start, None)
    begin = start + _FRAME.size
    end = begin + head_size + bodies_size
    if len(content) < end:
        return None
    view = memoryview(content)[begin:end]
    if zlib.crc32(view) != checksum:
        return SpoolDamage(start, end if content[end : end + 4] in {_MAGIC, b""} else None)
    return SpooledRecord(_parse(bytes(view[:head_size]), view[head_size:]), end)


def decode_records(content: bytes) -> Iterator[SpooledRecord | SpoolDamage]:
    """Read record after record, and past damage where the next one can be found; an unfinished last one is left out."""
    position = 0
    while position < len(content):
        record = decode_record(content, position)
        if record is None:
            return
        yield record
        resume = record.resume if isinstance(record, SpoolDamage) else record.end
        if resume is None:
            return
        position = resume


def _parse(head: bytes, bodies: memoryview) -> RecordBatch:
    header = json.loads(head)
    keys = [AttemptKey(run, CellKey(*cell), attempt) for run, *cell, attempt in header["keys"]]
    blobs: dict[str, bytes] = {}
    position = 0
    for digest, size in header["blobs"]:
        blobs[digest] = bytes(bodies[position : position + size])
        position += size
    return RecordBatch(
        events=tuple((keys[at], Event(**_restored(values))) for at, values in header["events"]),
        blobs=blobs,
        attempts=tuple(AttemptRecord(key=keys[at], **_restored(values)) for at, values in header["attempts"]),
    )


def _cell_values(cell: CellKey) -> list[str | int]:
    return [cell.scenario, cell.server, cell.model, cell.replicate]


def _event_values(event: Event) -> dict[str, Any]:
    return _values(event, _EVENT_FIELDS)


def _values(record: Event | AttemptRecord, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: _plain(getattr(record, name)) for name in names}


def _plain(value: Any) -> Any:  # noqa: ANN401 - a field's value, of the field's type
    if isinstance(value, datetime):
        return format_instant(value)
    return str(value) if isinstance(value, Decimal) else value


def _restored(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _restore(name, value) for name, value in values.items()}


def _restore(name: str, value: Any) -> Any:  # noqa: ANN401 - as `_plain`
    if value is None:
        return None
    if name in _INSTANTS:
        return parse_instant(value)
    if name == "usd":
        return Decimal(value)
    return _ENUMS[name](value) if name in _ENUMS else value
