"""How far an interval would reach with more replicates, if the mean and the spread stayed as they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from proctor.core.stats.observations import DIFFERENCE, TINY, Interval
from proctor.core.stats.quantiles import ONE_SIDE, UNSEEN, Z_POWER, student_t, unseen_share

MOST_REPLICATES = 10_000
"""Beyond this, "more replicates" is no advice."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the reach of an interval of differences depends on.

    Attributes:
        delta: the interval as it is.
        scenarios: how many.
        constant: how many of them do not vary.
        level: mean of those.
        replicates: most in any scenario.
        tail: chance that the interval misses on one side.
    """

    delta: Interval
    scenarios: int
    constant: int
    level: float
    replicates: int
    tail: float = ONE_SIDE

    @classmethod
    def of(cls, strata: Sequence[Sequence[float]], delta: Interval, tail: float = ONE_SIDE) -> Self:
        """Return the shape of differences by scenario."""
        still = [values[0] for values in strata if max(values) - min(values) < TINY]
        level = math.fsum(still) / len(still) if still else 0.0
        return cls(delta, len(strata), len(still), level, max(len(values) for values in strata), tail)

    def detectable(self) -> float:
        """Return the smallest drop that 80 of 100 runs of this size tell from none."""
        delta = self.delta
        by_spread = (student_t(delta.degrees, self.tail) + Z_POWER) * delta.error if delta.error else 0.0
        return min(1.0, max(by_spread, delta.mean - delta.low))

    def replicates_needed(self, max_drop: float | None) -> int | None:
        """Return how many replicates would bring the nearer end past the threshold; None if it is, or none would."""
        delta = self.delta
        if max_drop is None or delta.low >= -max_drop or delta.high < -max_drop:
            return None
        distance = abs(delta.mean + max_drop)
        reach = self.reach_below if delta.mean > -max_drop else self.reach_above
        return _first(lambda replicates: reach(replicates) <= distance, self.replicates + 1, MOST_REPLICATES)

    def reach_below(self, replicates: int) -> float:
        """Return how far below the mean the interval would reach."""
        missed = unseen_share([replicates] * self.scenarios, UNSEEN) * (self.delta.mean - DIFFERENCE.low)
        return max(missed, math.hypot(self._varying(replicates), self._hidden(replicates, self.level - DIFFERENCE.low)))

    def reach_above(self, replicates: int) -> float:
        """Return how far above the mean the interval would reach."""
        return math.hypot(self._varying(replicates), self._hidden(replicates, DIFFERENCE.high - self.level))

    def _varying(self, replicates: int) -> float:
        delta = self.delta
        if not delta.error:
            return 0.0
        degrees = delta.degrees * (replicates - 1) // max(self.replicates - 1, 1)
        return student_t(max(degrees, 1), self.tail) * delta.error * math.sqrt(self.replicates / replicates)

    def _hidden(self, replicates: int, room: float) -> float:
        if not self.constant:
            return 0.0
        return unseen_share([replicates] * self.constant, ONE_SIDE) * room * self.constant / self.scenarios


def _first(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """Return the least number from which a condition holds, if it holds from there on; None if not even at the end."""
    if not holds(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
