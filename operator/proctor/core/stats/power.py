"""How often the gate says what, by simulation; and how many replicates a drop needs.

Simulated runs go through the same intervals as real ones (`batches`), thousands at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from proctor.core.stats.batches import estimate_batch
from proctor.core.stats.chances import Chance
from proctor.core.stats.observations import DIFFERENCE, TINY, Interval
from proctor.core.stats.quantiles import Z_POWER
from proctor.core.stats.sequential import plan_looks, tails_of
from proctor.core.stats.sizing import Shape

RUNS = 2000
RESAMPLES = 250
"""A sixteenth of a real run's: an end moves by less than the noise of the simulation itself."""
ENOUGH = 0.80
"""A size is enough when so many equal pairs pass, and so many drops of twice the limit fail."""
_STEP = 1.08
"""Sizes tried one after the other grow by this: the reader pays in cells, not in digits."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a run is.

    Attributes:
        replicates: of every run; the most, where a run may stop before.
        first: replicates after which it may stop, and after each block from there on; None where it may not.
    """

    scenarios: int
    replicates: int
    first: int | None = None

    @property
    def pairs(self) -> int:
        """Pairs of one candidate arm with its baseline."""
        return self.scenarios * self.replicates

    @property
    def looks(self) -> tuple[int, ...]:
        """Replicates at which the run is looked at."""
        return plan_looks(self.replicates if self.first is None else min(self.first, self.replicates), self.replicates)


@dataclass(frozen=True, slots=True)
class Rates:
    """Share of simulated runs with each verdict; the rest is Inconclusive.

    Attributes:
        replicates: how many a run took, on average.
    """

    passed: float
    failed: float
    replicates: float


@dataclass(frozen=True, slots=True)
class Power:
    """What a size can tell.

    Attributes:
        equal: of a candidate that is as good as the baseline.
        limit: of one that is exactly `maxDrop` worse.
        double: of one that is twice `maxDrop` worse.
    """

    size: Size
    equal: Rates
    limit: Rates
    double: Rates

    @property
    def enough(self) -> bool:
        """Say whether an equal pair mostly passes and a drop of twice the limit mostly fails."""
        return self.equal.passed >= ENOUGH and self.double.failed >= ENOUGH


def simulate(
    chance: Chance, size: Size, *, drop: float, max_drop: float, runs: int = RUNS, honest: bool = True
) -> Rates:
    """Return how often runs of a size pass and fail, and what they take.

    Args:
        chance: where scores come from.
        size: of every run.
        drop: true drop of the candidate.
        max_drop: the gate's.
        runs: how many are simulated.
        honest: as `estimate_batch` has it.
    """
    random = np.random.default_rng([size.scenarios, size.replicates, round(drop * 10_000)])
    shape = (runs, size.replicates)
    strata = [
        np.round(chance.draw(random, shape, drop), 4) - np.round(chance.draw(random, shape, 0.0), 4)
        for _ in range(size.scenarios)
    ]
    passed = failed = 0
    taken = 0
    looks = size.looks
    for look, tail in zip(looks, tails_of(looks), strict=True):
        if look < 2:  # noqa: PLR2004 - one value says nothing about spread
            continue
        seen = [values[:, :look] for values in strata]
        batch = estimate_batch(seen, DIFFERENCE, resamples=RESAMPLES, seed=1, honest=honest, tail=tail)
        passes, fails = batch.low >= -max_drop - TINY, batch.high < -max_drop - TINY
        is_open = ~(passes | fails)
        passed += int(passes.sum())
        failed += int(fails.sum())
        taken += look * int((~is_open).sum() if look < size.replicates else len(is_open))
        strata = [values[is_open] for values in strata]
        if not is_open.any():
            break
    return Rates(passed / runs, failed / runs, taken / runs)


def measure_power(chance: Chance, size: Size, *, max_drop: float, runs: int = RUNS) -> Power:
    """Return how often the gate says what at a size, for no drop, a drop of its limit, and one of twice that."""
    equal, limit, double = (
        simulate(chance, size, drop=factor * max_drop, max_drop=max_drop, runs=runs) for factor in (0, 1, 2)
    )
    return Power(size, equal, limit, double)


def find_size(
    chance: Chance, scenarios: int, *, max_drop: float, most: int, first: int | None = None, runs: int = RUNS
) -> Power | None:
    """Return the least size that is enough, to about 8 %; None if none up to `most` replicates is.

    Args:
        chance: where scores come from.
        scenarios: of the suite.
        max_drop: the gate's.
        most: replicates tried.
        first: as `Size` has it.
        runs: how many are simulated per size.
    """
    replicates = _guess(chance.deviation * math.sqrt(2), scenarios, max_drop=max_drop, most=most)
    while replicates is not None and replicates <= most:
        power = measure_power(chance, Size(scenarios, replicates, first), max_drop=max_drop, runs=runs)
        if power.enough:
            return power
        replicates = max(replicates + 1, math.ceil(replicates * _STEP))
    return None


def _guess(deviation: float, scenarios: int, *, max_drop: float, most: int) -> int | None:
    """Return the least replicates that are enough for normal differences, by formula."""
    for replicates in range(2, most + 1):
        error = deviation / math.sqrt(scenarios * replicates)
        delta = Interval(0.0, -1.0, 1.0, scenarios * replicates, error=error, degrees=scenarios * (replicates - 1))
        constant = 0 if deviation else scenarios
        shape = Shape(delta, scenarios, constant, level=0.0, replicates=replicates)
        if shape.reach_below(replicates) + Z_POWER * error <= max_drop:
            # The formula is a little too careful where both ends have room: begin just below it.
            return max(2, math.floor(replicates / _STEP))
    return None
