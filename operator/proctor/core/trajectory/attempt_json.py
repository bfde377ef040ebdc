"""Ended attempts as JSON, for whoever polls the gateway."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal
from typing import Any

from proctor.clock import format_instant, parse_instant
from proctor.core.ids import AttemptKey, CellKey
from proctor.core.trajectory.outcome import AnswerSource, AttemptRecord, Limit, Outcome

_SPECIAL = {"key", "outcome", "opened", "ended", "usd", "limit", "answer_source"}


def render_record(record: AttemptRecord) -> dict[str, Any]:
    """Return a record as JSON values; amounts are strings, instants RFC 3339."""
    values: dict[str, Any] = {
        field.name: getattr(record, field.name) for field in fields(record) if field.name not in _SPECIAL
    }
    return values | {
        "id": record.key.opaque_id,
        "run": record.key.run,
        "cell": str(record.key.cell),
        "attempt": record.key.attempt,
        "outcome": record.outcome.value,
        "opened": format_instant(record.opened),
        "ended": format_instant(record.ended),
        "usd": None if record.usd is None else format(record.usd, "f"),
        "limit": record.limit.value if record.limit is not None else None,
        "answer_source": record.answer_source.value,
    }


def parse_record(values: Mapping[str, Any]) -> AttemptRecord:
    """Read what `render_record` wrote.

    Raises:
        ValueError: a value has not the form it should have.
        KeyError: a value is missing.
    """
    plain = {field.name: values[field.name] for field in fields(AttemptRecord) if field.name not in _SPECIAL}
    return AttemptRecord(
        key=AttemptKey(values["run"], CellKey.parse(values["cell"]), values["attempt"]),
        outcome=Outcome(values["outcome"]),
        opened=parse_instant(values["opened"]),
        ended=parse_instant(values["ended"]),
        usd=None if values["usd"] is None else Decimal(values["usd"]),
        limit=None if values["limit"] is None else Limit(values["limit"]),
        answer_source=AnswerSource(values["answer_source"]),
        **plain,
    )
