"""Makers of what a results store holds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from proctor.adapters.clickhouse.results import RecordBatch
from proctor.core.digests import digest_bytes
from proctor.core.ids import AttemptKey, CellKey
from proctor.core.trajectory.events import Event, EventKind
from proctor.core.trajectory.outcome import AnswerSource, AttemptRecord, Outcome

ANCHOR = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


def make_key(*, run: str = "run-1", replicate: int = 1, attempt: int = 1, model: str = "loudest") -> AttemptKey:
    return AttemptKey(run, CellKey("error-root-cause", "clickscope", model, replicate), attempt)


def make_event(seq: int = 1, **changes: Any) -> Event:
    values: dict[str, Any] = {
        "seq": seq,
        "ts": ANCHOR + timedelta(microseconds=seq),
        "kind": EventKind.TOOL_CALL,
        "name": "run_query",
        "span_id": f"{seq:016x}",
        "trace_id": "0" * 32,
        "latency_us": 1500,
        "usd": Decimal("0.000000125"),
    }
    return Event(**{**values, **changes})


def make_attempt(key: AttemptKey | None = None, **changes: Any) -> AttemptRecord:
    values: dict[str, Any] = {
        "key": key or make_key(),
        "outcome": Outcome.COMPLETED,
        "reason": "answered",
        "opened": ANCHOR,
        "ended": ANCHOR + timedelta(seconds=3, microseconds=7),
        "requests": 5,
        "turns": 3,
        "tool_calls": 2,
        "agent_tool_errors": 1,
        "server_tool_errors": 0,
        "infra_tool_errors": 0,
        "denied": 0,
        "input_tokens": 1200,
        "output_tokens": 80,
        "usd": Decimal("0.0125"),
        "waited_us": 0,
        "limit": None,
        "answer_source": AnswerSource.PUT,
        "answer_digest": digest_bytes(b"answer"),
        "tools_digest": digest_bytes(b"tools"),
        "trajectory_digest": digest_bytes(b"trajectory"),
        "events": 3,
    }
    return AttemptRecord(**{**values, **changes})


def make_blobs(*bodies: bytes) -> Mapping[str, bytes]:
    return {digest_bytes(body): body for body in bodies}


def make_batch(key: AttemptKey | None = None, *, seq: int = 1, bodies: tuple[bytes, ...] = ()) -> RecordBatch:
    """One event of an attempt, with the bodies given."""
    return RecordBatch(events=((key or make_key(), make_event(seq)),), blobs=make_blobs(*bodies))
