"""What a provider's failure means, and how long to wait before the next try."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum

_RETRIED_TYPES = frozenset({"overloaded_error", "api_error", "rate_limit_error", "timeout_error"})
_RETRIED_STATUSES = frozenset({408, 409, 425, 429})
_SERVER_ERROR = 500
_KEY_STATUSES = frozenset({401, 403})
_KEY_TYPES = frozenset({"authentication_error", "permission_error"})
_OUT_OF_CREDIT = "credit balance is too low"
"""An account without credit is told as an invalid request; taken as one, it would be counted against the agent."""

_MAX_HINT_SECONDS = 10 * 365 * 86_400
_FIRST_PAUSE_SECONDS = 1.0
_LEAST_PAUSE_SECONDS = 0.1
_MOST_FLOOR_SECONDS = 5.0


class Meaning(StrEnum):
    """What a failure says about what to do next."""

    RETRY = "retry"  # the same request may succeed later
    KEY_REFUSED = "key_refused"  # no request with this key will
    TERMINAL = "terminal"  # no request to this provider will
    AGENTS_FAULT = "agents_fault"  # the request itself is wrong


@dataclass(frozen=True, slots=True)
class ProviderFailure:
    """A failed try.

    Attributes:
        meaning: what to do next.
        error_class: machine word for the record.
        message: for people; may quote the provider.
        retry_after: seconds that the provider asks to wait; None if it names none.
    """

    meaning: Meaning
    error_class: str
    message: str = ""
    retry_after: float | None = None


def classify_reply(status: int, body: bytes, *, retry_after: float | None = None) -> ProviderFailure:
    """Say what a reply that is no message means."""
    kind, message = parse_error(body)
    return ProviderFailure(_meaning(status, kind, message), kind or f"http_{status}", message, retry_after)


def classify_stream_error(kind: str, message: str) -> ProviderFailure:
    """Say what an error inside a stream means: it came with status 200, so its type is all there is (P24)."""
    if kind in _KEY_TYPES:
        return ProviderFailure(Meaning.KEY_REFUSED, kind, message)
    meaning = Meaning.AGENTS_FAULT if kind == "invalid_request_error" else Meaning.RETRY
    return ProviderFailure(meaning, kind, message)


def parse_error(body: bytes) -> tuple[str, str]:
    """Return type and message of an error body; empty where it has none."""
    try:
        error = json.loads(body)["error"]
        return str(error["type"])[:100], str(error["message"])[:2000]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "", ""


def parse_retry_after(value: str | None, *, now: datetime) -> float | None:
    """Read a Retry-After header: seconds, or a date."""
    if value is None:
        return None
    text = value.strip()
    try:
        seconds = float(text)
    except ValueError:
        return _seconds_until(text, now)
    return min(seconds, _MAX_HINT_SECONDS) if seconds >= 0 else None


def choose_pause(retry: int, failure: ProviderFailure, *, most: float, jitter: float) -> float:
    """Return how many seconds to wait before the next try.

    Args:
        retry: how many retries there were already.
        failure: why the last try failed; what the provider asks for is honoured in full.
        most: longest pause that is chosen here.
        jitter: between 0 and 1, so that cells don't come back all at once.
    """
    growth = float(1 << min(retry, 30))
    if failure.retry_after is not None:
        # A provider that says 0 again and again must not be asked a thousand times a second.
        return max(failure.retry_after, min(_LEAST_PAUSE_SECONDS * growth, _MOST_FLOOR_SECONDS))
    pause = min(_FIRST_PAUSE_SECONDS * growth, most)
    return pause * (0.5 + jitter / 2)


def _meaning(status: int, kind: str, message: str) -> Meaning:
    if kind in _RETRIED_TYPES or status in _RETRIED_STATUSES or status >= _SERVER_ERROR:
        return Meaning.RETRY
    if status in _KEY_STATUSES or kind in _KEY_TYPES:
        return Meaning.KEY_REFUSED
    if status in {402, 404} or status < 400 or _OUT_OF_CREDIT in message:  # noqa: PLR2004 - HTTP's own numbers
        return Meaning.TERMINAL
    return Meaning.AGENTS_FAULT


def _seconds_until(text: str, now: datetime) -> float | None:
    try:
        instant = parsedate_to_datetime(text)
    except ValueError:
        return None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return min(max((instant - now).total_seconds(), 0.0), _MAX_HINT_SECONDS)
