"""Time spent waiting for an overloaded provider: kept apart, and counted once however many calls wait (P23)."""

from __future__ import annotations


class WaitLedger:
    """Stretches of monotonic time, in nanoseconds, during which at least one call of an attempt was waiting."""

    def __init__(self) -> None:
        self._closed: list[tuple[int, int]] = []
        self._open: dict[int, int] = {}
        self._next = 0

    def begin(self, now: int) -> int:
        """Note that a call starts to wait; return the number to end it with."""
        self._next += 1
        self._open[self._next] = now
        return self._next

    def end(self, number: int, now: int) -> None:
        """Note that a call waits no longer."""
        self._add(self._open.pop(number), now)

    def add(self, started: int, ended: int) -> None:
        """Count a stretch that turned out to be waiting only when it was over, like a try that failed."""
        self._add(started, ended)

    def total_us(self, now: int) -> int:
        """Return the microseconds waited until now, waits that still go on included."""
        stretches = _merged([*self._closed, *((start, now) for start in self._open.values())])
        return sum(end - start for start, end in stretches) // 1000

    def _add(self, started: int, ended: int) -> None:
        if ended > started:
            self._closed = _merged([*self._closed, (started, ended)])


def _merged(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(stretches):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
