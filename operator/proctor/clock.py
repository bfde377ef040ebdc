"""Time as a value that can be handed in, so that decisions can be tested at any instant."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What tells the time."""

    def __call__(self) -> datetime:
        """Return the current instant, in UTC."""
        ...


def utc_now() -> datetime:
    """Return the wall clock's instant, in UTC."""
    return datetime.now(UTC)


def format_instant(instant: datetime) -> str:
    """Render an aware instant as RFC 3339 in UTC with microseconds, as every record does (M-B8)."""
    return instant.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_instant(text: str) -> datetime:
    """Read an RFC 3339 instant; a zone is required.

    Raises:
        ValueError: the text is no instant, or has no zone.
    """
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"instant {text!r} has no zone: append 'Z' or an offset")
    return instant.astimezone(UTC)
