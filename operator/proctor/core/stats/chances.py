"""Where simulated scores come from: kinds of agents, each with its spread per cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from proctor.core.stats.batches import Floats


class Chance(Protocol):
    """Where the scores of one arm's cells come from."""

    @property
    def deviation(self) -> float:
        """Standard deviation of a cell's score."""

    def draw(self, random: np.random.Generator, shape: tuple[int, int], drop: float) -> Floats:
        """Return scores whose mean is `drop` below what it is without a drop."""


@dataclass(frozen=True, slots=True)
class NormalScores:
    """Scores around a mean, alike to both sides, cut to 0..1."""

    deviation: float
    mean: float = 0.7

    def draw(self, random: np.random.Generator, shape: tuple[int, int], drop: float) -> Floats:
        """Return scores whose mean is `drop` below what it is without a drop."""
        return np.clip(random.normal(self.mean - drop, self.deviation, shape), 0.0, 1.0)


_FOUND = ((0.88, 0.2), (0.94, 0.3), (1.0, 0.5))
_LAPSED = ((0.0, 1 / 3), (0.2, 1 / 3), (0.4, 1 / 3))


@dataclass(frozen=True, slots=True)
class Lapses:
    """Scores as rubrics give them: a few values near the top, and now and then an agent that loses its way.

    A drop is more lapses.

    Attributes:
        rate: share of cells that lapse.
    """

    rate: float

    @property
    def deviation(self) -> float:
        """Standard deviation of a cell's score."""
        values = [*((score, (1 - self.rate) * share) for score, share in _FOUND)]
        values += [(score, self.rate * share) for score, share in _LAPSED]
        mean = math.fsum(score * share for score, share in values)
        return math.sqrt(math.fsum(share * (score - mean) ** 2 for score, share in values))

    def draw(self, random: np.random.Generator, shape: tuple[int, int], drop: float) -> Floats:
        """Return scores whose mean is `drop` below what it is without a drop."""
        lost = _mean(_FOUND) - _mean(_LAPSED)
        lapsed = random.random(shape) < self.rate + drop / lost
        return np.where(lapsed, _pick(random, shape, _LAPSED), _pick(random, shape, _FOUND))


@dataclass(frozen=True, slots=True)
class RareFailure:
    """Steady scores around 0.9, and complete failures as many as make up the drop: few cells seldom show one."""

    deviation: float = 0.03

    def draw(self, random: np.random.Generator, shape: tuple[int, int], drop: float) -> Floats:
        """Return scores whose mean is `drop` below what it is without a drop."""
        steady = 0.9 + np.clip(random.normal(0, self.deviation, shape), -0.1, 0.1)
        return np.asarray(steady - np.where(random.random(shape) < drop / 0.8, 0.8, 0.0))


@dataclass(frozen=True, slots=True)
class AllOrNothing:
    """Always 1, and 0 in as many cells as make up the drop: replicates that mostly do not vary."""

    deviation: float = 0.0

    def draw(self, random: np.random.Generator, shape: tuple[int, int], drop: float) -> Floats:
        """Return scores whose mean is `drop` below what it is without a drop."""
        return np.where(random.random(shape) < drop, 0.0, 1.0)


_STEPS = tuple(zip((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), (0.02, 0.03, 0.05, 0.1, 0.3, 0.5), strict=True))
_WORSE_STEPS = tuple(zip((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), (0.3, 0.3, 0.2, 0.1, 0.1, 0.0), strict=True))


@dataclass(frozen=True, slots=True)
class Steps:
    """One criterion of a judge, 0 to 5 and mostly 5; a drop mixes in worse marks."""

    deviation: float = 0.24

    def draw(self, random: np.random.Generator, shape: tuple[int, int], drop: float) -> Floats:
        """Return scores whose mean is `drop` below what it is without a drop."""
        worse = random.random(shape) < drop / (_mean(_STEPS) - _mean(_WORSE_STEPS))
        return np.where(worse, _pick(random, shape, _WORSE_STEPS), _pick(random, shape, _STEPS))


def _mean(values: tuple[tuple[float, float], ...]) -> float:
    return math.fsum(score * share for score, share in values)


def _pick(random: np.random.Generator, shape: tuple[int, int], values: tuple[tuple[float, float], ...]) -> Floats:
    scores = np.array([score for score, _ in values])
    return scores[random.choice(len(values), size=shape, p=[share for _, share in values])]
