"""Events as JSON: the columns of the `events` table under their own names."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from proctor.clock import format_instant
from proctor.core.ids import AttemptKey
from proctor.core.trajectory.events import Event

_FIELDS = tuple(field.name for field in fields(Event))


def build_event_json(key: AttemptKey, event: Event) -> dict[str, Any]:
    """Return an event with the attempt that it belongs to."""
    values = {name: getattr(event, name) for name in _FIELDS}
    values["ts"] = format_instant(event.ts)
    values["usd"] = None if event.usd is None else format(event.usd, "f")
    return {**key.columns, **values}
