"""What happened in one attempt, in order: written here, at the boundary, and never by the agent (M-B1, S22)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Required, TypedDict, Unpack

from proctor.clock import Clock, utc_now
from proctor.core.digests import digest_bytes, preview
from proctor.core.gatewaypolicy.pricing import Usage
from proctor.core.gatewaypolicy.tokens import MASKED
from proctor.core.ids import AttemptKey
from proctor.core.trajectory.events import Event, EventKind, Status
from proctor.core.trajectory.trajectory_digest import TrajectoryDigest
from proctor.errors import Terminal
from proctor.gateway.ports import RecordSink

_MAX_WORD = 256
"""Longest name or error class that is kept; an agent chooses tool names."""


@dataclass(frozen=True, slots=True)
class Span:
    """The beginning of something that will become an event.

    Attributes:
        ts: when it began, for people.
        started_ns: when it began, on the monotonic clock, for its duration.
        span_id: 16 hex digits.
    """

    ts: datetime
    started_ns: int
    span_id: str


class EventFields(TypedDict, total=False):
    """What a door says about an event; the recorder adds order, time, digests and previews."""

    kind: Required[EventKind]
    span: Span | None
    status: Status
    name: str
    error_class: str
    waited_us: int
    retry: int
    request: bytes
    result: bytes
    usage: Usage
    usd: Decimal | None


@dataclass(slots=True)
class Tally:
    """Sums over the events of an attempt, for its row."""

    events: int = 0
    turns: int = 0
    tool_calls: int = 0
    tool_errors: dict[Status, int] = field(default_factory=dict)
    denied: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: Decimal | None = None

    def add(self, event: Event) -> None:
        """Count one event."""
        self.events += 1
        self.denied += event.status is Status.DENIED
        self.input_tokens += event.input_tokens + event.cache_read_tokens + event.cache_write_tokens
        self.output_tokens += event.output_tokens
        if event.usd is not None:
            self.usd = (self.usd or Decimal(0)) + event.usd
        if event.kind is EventKind.MODEL_CALL:
            self.turns += event.status is Status.OK
        if event.kind is EventKind.TOOL_CALL and event.status is not Status.DENIED:
            self.tool_calls += 1
            self.tool_errors[event.status] = self.tool_errors.get(event.status, 0) + 1


class Recorder:
    """Numbers the events of one attempt without gaps and hands them on.

    Events are numbered when they are over, so whatever an event could have depended on has a lower number, and calls
    made at the same time never leave a hole.

    Args:
        key: the attempt.
        sink: takes rows and bodies.
        clock: tells the time of day.
        monotonic_ns: tells durations.
        secret: of the attempt's token: nothing that is recorded holds it, whoever wrote it there.
    """

    def __init__(
        self,
        key: AttemptKey,
        sink: RecordSink,
        *,
        clock: Clock = utc_now,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        secret: bytes = b"",
    ) -> None:
        self.key = key
        self.tally = Tally()
        self.trace_id = secrets.token_hex(16)
        self._sink = sink
        self._clock = clock
        self._monotonic_ns = monotonic_ns
        self._digest = TrajectoryDigest()
        self._secret = secret
        self._sealed = False

    @property
    def sealed(self) -> bool:
        """Whether the trajectory is complete."""
        return self._sealed

    def holds_secret(self, text: bytes) -> bool:
        """Tell whether the attempt's token is in a text."""
        return bool(self._secret) and self._secret in text

    def mask(self, text: bytes) -> bytes:
        """Return a text without the attempt's token."""
        return text.replace(self._secret, MASKED.encode()) if self.holds_secret(text) else text

    def mask_text(self, text: str) -> str:
        """Return the same of a text that is no UTF-8 yet."""
        return self.mask(text.encode("utf-8", "replace")).decode()

    def start(self) -> Span:
        """Note that something begins."""
        return Span(self._clock(), self._monotonic_ns(), secrets.token_hex(8))

    def record(self, **fields: Unpack[EventFields]) -> Event:
        """Add an event that is over.

        Raises:
            Terminal: the trajectory is complete; nothing can be added.
        """
        if self._sealed:
            raise Terminal(f"recording {fields['kind']} of attempt {self.key}: its trajectory is complete")
        event, blobs = self._build(fields)
        # First, so that an event that could not be kept takes no number.
        self._sink.submit(events=((self.key, event),), blobs=blobs)
        self.tally.add(event)
        self._digest.add(event)
        return event

    def seal(self) -> str:
        """Close the trajectory; return its digest."""
        self._sealed = True
        return self._digest.hexdigest()

    def _build(self, fields: EventFields) -> tuple[Event, dict[str, bytes]]:
        span = fields.get("span") or self.start()
        waited_us = fields.get("waited_us", 0)
        request, result = self.mask(fields.get("request", b"")), self.mask(fields.get("result", b""))
        usage = fields.get("usage", Usage())
        blobs = {digest_bytes(body): body for body in (request, result) if body}
        event = Event(
            seq=self.tally.events + 1,
            ts=span.ts,
            kind=fields["kind"],
            status=fields.get("status", Status.OK),
            name=self._word(fields.get("name", "")),
            error_class=self._word(fields.get("error_class", "")),
            span_id=span.span_id,
            trace_id=self.trace_id,
            latency_us=max((self._monotonic_ns() - span.started_ns) // 1000 - waited_us, 0),
            waited_us=waited_us,
            retry=fields.get("retry", 0),
            request_digest=digest_bytes(request) if request else "",
            request_bytes=len(request),
            request_preview=preview(request),
            result_digest=digest_bytes(result) if result else "",
            result_bytes=len(result),
            result_preview=preview(result),
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            usd=fields.get("usd"),
        )
        return event, blobs

    def _word(self, text: str) -> str:
        return self.mask_text(text)[:_MAX_WORD]
