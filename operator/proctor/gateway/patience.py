"""How an overloaded provider is waited for: with a cap, and by all attempts of a key together (P23)."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

_NANOSECONDS = 1_000_000_000


class SharedPause:
    """Until when a provider wants no request with one key: what it told one attempt holds for all."""

    def __init__(self) -> None:
        self._until_ns = 0

    def extend(self, seconds: float, *, now_ns: int) -> None:
        """Note that the provider asked for a pause."""
        self._until_ns = max(self._until_ns, now_ns + int(seconds * _NANOSECONDS))

    def remaining(self, *, now_ns: int) -> float:
        """Return how many seconds of the pause are left."""
        return max(self._until_ns - now_ns, 0) / _NANOSECONDS


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long, and by what clock.

    Attributes:
        wait_seconds: how long an attempt may wait in all; past it the attempt is an infrastructure error.
        pause_seconds: longest pause between two tries when the provider names none.
        sleep: waits.
        jitter: gives a number between 0 and 1.
        monotonic_ns: tells durations.
    """

    wait_seconds: int = 600
    pause_seconds: float = 30.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random
    monotonic_ns: Callable[[], int] = time.monotonic_ns
    _pauses: dict[str, SharedPause] = field(default_factory=dict, init=False, repr=False)

    def pause_of(self, provider: str) -> SharedPause:
        """Return the pause that all users of a provider and a key share."""
        return self._pauses.setdefault(provider, SharedPause())
