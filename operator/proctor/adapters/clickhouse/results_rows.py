"""The results store's rows: what is written together, and how each record becomes a row and back, exactly.

Text is written as bytes with lone surrogates kept, because names and previews may come from hostile servers: whatever
Python can hold comes back as it was. Rows are read as JSON has them: instants as ISO text, amounts as decimal text.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from proctor.adapters.clickhouse.rowjson import Row
from proctor.core.digests import digest_bytes
from proctor.core.ids import AttemptKey, CellKey
from proctor.core.trajectory.events import Event, EventKind, Status
from proctor.core.trajectory.outcome import AnswerSource, AttemptRecord, Limit, Outcome
from proctor.errors import InvalidInput, Terminal

USD_SCALE = 18
"""Digits after the point of a price: a price per million with twelve of them is still exact."""

AMOUNT = f"Nullable(Decimal(38, {USD_SCALE}))"
INSTANT = "DateTime64(6, 'UTC')"
_MAX_UNSIGNED = {"UInt16": (1 << 16) - 1, "UInt32": (1 << 32) - 1, "UInt64": (1 << 64) - 1}
DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_DIGEST_CHARS = 64
_MAX_USD = Decimal(10) ** (38 - USD_SCALE)
_EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
_LATEST = datetime(2299, 12, 31, tzinfo=UTC)  # what DateTime64 can hold


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBatch:
    """Rows that were recorded together.

    Attributes:
        events: of any attempts, each with its key.
        blobs: bodies by their SHA-256.
        attempts: ended ones.
    """

    events: tuple[tuple[AttemptKey, Event], ...] = ()
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    attempts: tuple[AttemptRecord, ...] = ()

    @property
    def keys(self) -> frozenset[AttemptKey]:
        """The attempts that it has rows of."""
        return frozenset(key for key, _ in self.events) | frozenset(record.key for record in self.attempts)

    @property
    def row_count(self) -> int:
        """How many rows it is."""
        return len(self.events) + len(self.blobs) + len(self.attempts)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeRow:
    """All marks of one attempt by one rubric and one judge.

    Attributes:
        key: the attempt.
        rubric_digest: of the rubric that it was graded by.
        judge_model: empty where only checks graded.
        judge_prompt_digest: as above.
        score: None for an ungraded one.
        payload: the whole grade as JSON.
    """

    key: AttemptKey
    rubric_digest: str
    judge_model: str = ""
    judge_prompt_digest: str = ""
    score: Decimal | None
    payload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One EvalRun as it was last written.

    Attributes:
        run: its uid.
        name: its name.
        suite: the suite's name.
        suite_digest: of the frozen suite.
        created: when it began.
        verdict: as its status has it.
        payload: the whole EvalRun as JSON.
    """

    run: str
    name: str
    suite: str
    suite_digest: str
    created: datetime
    verdict: str
    payload: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table's name, and the columns of its rows with their types, in order."""

    name: str
    columns: tuple[tuple[str, str], ...]

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names only."""
        return tuple(name for name, _ in self.columns)

    @property
    def selected(self) -> str:
        """Names as a query lists them."""
        return ", ".join(f"`{name}`" for name in self.column_names)

    @property
    def column_types(self) -> tuple[str, ...]:
        """Types only; text is sent as plain String, which the server turns into the column's own encoding."""
        return tuple(kind for _, kind in self.columns)


KEY_COLUMNS = (
    ("run", "String"),
    ("scenario", "String"),
    ("server", "String"),
    ("model", "String"),
    ("replicate", "UInt32"),
    ("attempt", "UInt16"),
)
"""Of `AttemptKey.columns`."""

_EVENT_TYPES = {
    "seq": "UInt32",
    "ts": INSTANT,
    "latency_us": "UInt64",
    "waited_us": "UInt64",
    "retry": "UInt32",
    "request_bytes": "UInt64",
    "result_bytes": "UInt64",
    "input_tokens": "UInt64",
    "output_tokens": "UInt64",
    "cache_read_tokens": "UInt64",
    "cache_write_tokens": "UInt64",
    "usd": AMOUNT,
}
_ATTEMPT_TYPES = {
    "opened": INSTANT,
    "ended": INSTANT,
    "requests": "UInt32",
    "turns": "UInt32",
    "tool_calls": "UInt32",
    "agent_tool_errors": "UInt32",
    "server_tool_errors": "UInt32",
    "infra_tool_errors": "UInt32",
    "denied": "UInt32",
    "input_tokens": "UInt64",
    "output_tokens": "UInt64",
    "usd": AMOUNT,
    "waited_us": "UInt64",
    "events": "UInt32",
}
_EVENT_FIELDS = tuple(item.name for item in fields(Event))
_ATTEMPT_FIELDS = tuple(item.name for item in fields(AttemptRecord) if item.name != "key")

EVENTS = Table("events", KEY_COLUMNS + tuple((name, _EVENT_TYPES.get(name, "String")) for name in _EVENT_FIELDS))
ATTEMPTS = Table(
    "attempts", KEY_COLUMNS + tuple((name, _ATTEMPT_TYPES.get(name, "String")) for name in _ATTEMPT_FIELDS)
)
BLOBS = Table("blobs", (("digest", "String"), ("size", "UInt64"), ("body", "String"), ("version", "UInt64")))
GRADES = Table(
    "grades",
    (
        *KEY_COLUMNS,
        ("rubric_digest", "String"),
        ("judge_model", "String"),
        ("judge_prompt_digest", "String"),
        ("score", AMOUNT),
        ("payload", "String"),
        ("version", "UInt64"),
    ),
)
RUNS = Table(
    "runs",
    (
        ("run", "String"),
        ("name", "String"),
        ("suite", "String"),
        ("suite_digest", "String"),
        ("created", INSTANT),
        ("verdict", "String"),
        ("payload", "String"),
        ("version", "UInt64"),
    ),
)

_KINDS = {kind.value: kind for kind in EventKind}
_STATUSES = {status.value: status for status in Status}
_ATTEMPT_ENUMS: dict[str, type[StrEnum]] = {"outcome": Outcome, "limit": Limit, "answer_source": AnswerSource}


def check_batch(batch: RecordBatch) -> None:
    """Refuse what the store couldn't hold, before it is taken in.

    Raises:
        InvalidInput: a value out of its column's range, or a body that is not stored under its own digest's form.
    """
    for key, event in batch.events:
        build_event_row(key, event)
    for record in batch.attempts:
        build_attempt_row(record)
    for digest in batch.blobs:
        if len(digest) != _DIGEST_CHARS or not digest.isascii():
            raise InvalidInput(f"body {digest[:_DIGEST_CHARS]!r}: not the SHA-256 of anything")


def build_event_row(key: AttemptKey, event: Event) -> Row:
    """Return an event's row.

    Raises:
        InvalidInput: a value that its column can't hold exactly.
    """
    values = (*key.columns.values(), *(getattr(event, name) for name in _EVENT_FIELDS))
    return _encode(EVENTS, values, f"event {event.seq} of {key}")


def parse_event(row: Row) -> Event:
    """Read what `build_event_row` wrote, without its key; written out, because there are tens of thousands of them."""
    (
        *_,
        seq,
        ts,
        kind,
        status,
        name,
        error_class,
        span_id,
        trace_id,
        latency_us,
        waited_us,
        retry,
        request_digest,
        request_bytes,
        request_preview,
        result_digest,
        result_bytes,
        result_preview,
        input_tokens,
        output_tokens,
        cache_read_tokens,
        cache_write_tokens,
        usd,
    ) = row
    return Event(
        seq=seq,
        ts=datetime.fromisoformat(ts),
        kind=_KINDS[kind],
        status=_STATUSES[status],
        name=name,
        error_class=error_class,
        span_id=span_id,
        trace_id=trace_id,
        latency_us=latency_us,
        waited_us=waited_us,
        retry=retry,
        request_digest=request_digest,
        request_bytes=request_bytes,
        request_preview=request_preview,
        result_digest=result_digest,
        result_bytes=result_bytes,
        result_preview=result_preview,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=cache_read_tokens,
        cache_write_tokens=cache_write_tokens,
        usd=_parse_amount(usd),
    )


def build_attempt_row(record: AttemptRecord) -> Row:
    """Return an attempt's row; raises as `build_event_row` does."""
    values = (*record.key.columns.values(), *(getattr(record, name) for name in _ATTEMPT_FIELDS))
    return _encode(ATTEMPTS, values, f"attempt {record.key}")


def parse_attempt(row: Row) -> AttemptRecord:
    """Read what `build_attempt_row` wrote."""
    values = _decode(ATTEMPTS, row, _ATTEMPT_ENUMS)
    values["limit"] = values["limit"] or None
    return AttemptRecord(key=parse_key(row), **values)


def build_grade_row(grade: GradeRow, *, version: int) -> Row:
    """Return a grade's row; raises as `build_event_row` does."""
    values = (
        *grade.key.columns.values(),
        grade.rubric_digest,
        grade.judge_model,
        grade.judge_prompt_digest,
        grade.score,
        grade.payload,
        version,
    )
    return _encode(GRADES, values, f"grade of {grade.key}")


def parse_grade(row: Row) -> GradeRow:
    """Read what `build_grade_row` wrote."""
    values = _decode(GRADES, row, {})
    del values["version"]
    return GradeRow(key=parse_key(row), **values)


def build_run_row(run: RunRow, *, version: int) -> Row:
    """Return a run's row; raises as `build_event_row` does."""
    values = (*(getattr(run, name) for name in RUNS.column_names[:-1]), version)
    return _encode(RUNS, values, f"run {run.name}")


def parse_run(row: Row) -> RunRow:
    """Read what `build_run_row` wrote."""
    values = dict(zip(RUNS.column_names, row, strict=True))
    del values["version"]
    return RunRow(**{**values, "created": datetime.fromisoformat(values["created"])})


def build_blob_row(digest: str, body: bytes, *, version: int) -> Row:
    """Return a body's row."""
    return (digest.encode("ascii"), len(body), body, version)


def list_digests(digests: Sequence[str]) -> str:
    """Return digests, each one that `DIGEST` matches, as the right side of ``IN``."""
    return "(" + ",".join(f"'{digest}'" for digest in digests) + ")"


def select_bodies(digests: Sequence[str]) -> str:
    """Return the query for bodies, whose rows `parse_body` reads; digests as for `list_digests`."""
    wanted = list_digests(digests)
    return f"SELECT digest, base64Encode(body) FROM blobs WHERE digest IN {wanted} LIMIT 1 BY digest"  # noqa: S608 - hexadecimal digits


def parse_body(row: Row, store: str) -> tuple[str, bytes]:
    """Read a body and its digest.

    Args:
        row: of `select_bodies`.
        store: where it is from, for people.

    Raises:
        Terminal: the body doesn't have the digest that it is stored under.
    """
    digest, text = row
    body = base64.b64decode(text)
    if digest_bytes(body) != digest:
        raise Terminal(f"{store}: body {digest} was changed after it was stored")
    return digest, body


def parse_key(row: Row) -> AttemptKey:
    """Read the key columns that begin a row."""
    run, scenario, server, model, replicate, attempt = row[: len(KEY_COLUMNS)]
    return AttemptKey(run, CellKey(scenario, server, model, replicate), attempt)


def _encode(table: Table, values: Row, what: str) -> Row:
    return tuple(
        _encode_value(value, kind, f"{what}: {name}") for value, (name, kind) in zip(values, table.columns, strict=True)
    )


def _encode_value(value: Any, kind: str, what: str) -> Any:  # noqa: ANN401 - a column's value, of the column's type
    if kind == "String":
        return ("" if value is None else str(value)).encode("utf-8", "surrogatepass")
    if kind in _MAX_UNSIGNED:
        if not 0 <= value <= _MAX_UNSIGNED[kind]:
            raise InvalidInput(f"{what}: {value} is outside 0..{_MAX_UNSIGNED[kind]}")
        return int(value)
    if kind == INSTANT:
        if value.tzinfo is None or not _EARLIEST <= value <= _LATEST:
            raise InvalidInput(f"{what}: {value} has no zone, or lies outside the years 1900 to 2299")
        return value.astimezone(UTC)
    return _encode_decimal(value, what)


def _encode_decimal(value: Decimal | None, what: str) -> Decimal | None:
    if value is None:
        return None
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or abs(value) >= _MAX_USD:
        raise InvalidInput(f"{what}: {value} is not finite, or too large to keep")
    # The digits beyond the scale must all be zero; comparing texts avoids the context's rounding.
    if exponent < -USD_SCALE and any(digit != "0" for digit in f"{value:f}".partition(".")[2][USD_SCALE:]):
        raise InvalidInput(f"{what}: {value} has more than {USD_SCALE} digits after the point")
    return value


def _decode(table: Table, row: Row, enums: Mapping[str, type[StrEnum]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for (name, kind), value in zip(table.columns[len(KEY_COLUMNS) :], row[len(KEY_COLUMNS) :], strict=True):
        if kind == INSTANT:
            values[name] = datetime.fromisoformat(value)
        elif kind == AMOUNT:
            values[name] = _parse_amount(value)
        else:
            values[name] = enums[name](value) if name in enums and value else value
    return values


def _parse_amount(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)
