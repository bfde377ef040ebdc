"""One digest for a whole trajectory: what was stored can be compared with what was seen (P30)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import fields
from decimal import Decimal

from proctor.clock import format_instant
from proctor.core.digests import digest_json
from proctor.core.trajectory.events import Event


def digest_event(event: Event) -> str:
    """Return the digest of all of an event's fields, as canonical JSON."""
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    values["ts"] = format_instant(event.ts)
    # The same amount has one text, whatever scale a store gives it back with.
    values["usd"] = None if event.usd is None else format(Decimal(event.usd).normalize(), "f")
    return digest_json(values)


class TrajectoryDigest:
    """SHA-256 over the digests of events, in order; events may be added as they happen."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, event: Event) -> None:
        """Add the next event."""
        self._hash.update(digest_event(event).encode())

    def hexdigest(self) -> str:
        """Return the digest of the events so far."""
        return self._hash.hexdigest()


def digest_trajectory(events: Iterable[Event]) -> str:
    """Return the digest of a trajectory that is already complete."""
    digest = TrajectoryDigest()
    for event in events:
        digest.add(event)
    return digest.hexdigest()
