"""Where simulated scores come from: kinds of agents, each with its spread per cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from proctor.core.stats.batches import Floats

Shares = tuple[tuple[float, float], ...]
"""Scores, each with the share of cells that have it."""


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


@dataclass(frozen=True, slots=True)
class Marks:
    """Scores of a few values only; a drop mixes in worse ones.

    Attributes:
        usual: scores and their shares.
        worse: scores and their shares, where an agent does badly.
    """

    usual: Shares
    worse: Shares

    @property
    def deviation(self) -> float:
        """Standard deviation of a cell's score."""
        mean = _mean(self.usual)
        return math.sqrt(math.fsum(share * (score - mean) ** 2 for score, share in self.usual))

    def draw(self, random: np.random.Generator, shape: tuple[int, int], drop: float) -> Floats:
        """Return scores whose mean is `drop` below what it is without a drop."""
        is_worse = random.random(shape) < drop / (_mean(self.usual) - _mean(self.worse))
        return np.where(is_worse, _pick(random, shape, self.worse), _pick(random, shape, self.usual))


STEPS = Marks(
    ((0.0, 0.02), (0.2, 0.03), (0.4, 0.05), (0.6, 0.1), (0.8, 0.3), (1.0, 0.5)),
    ((0.0, 0.3), (0.2, 0.3), (0.4, 0.2), (0.6, 0.1), (0.8, 0.1)),
)
"""One criterion of a judge, 0 to 5 and mostly 5."""
FOUR_MARKS = Marks(((0.0, 0.05), (0.5, 0.1), (0.83, 0.25), (1.0, 0.6)), ((0.0, 0.5), (0.5, 0.4), (0.83, 0.1)))
"""A short rubric: all of it, all but one line, half of it, nothing."""


@dataclass(frozen=True, slots=True)
class SeenScores:
    """Scores that an earlier run showed; a drop is more of its lower half, or all lower where that is not enough.

    Attributes:
        scores: in 0..1, spread as the cells of one scenario are.
    """

    scores: tuple[float, ...]

    @classmethod
    def of(cls, strata: Sequence[Sequence[float]]) -> Self:
        """Return the scores of all scenarios, each moved to the mean of all: what differs between them is no chance."""
        means = [math.fsum(values) / len(values) for values in strata]
        level = math.fsum(means) / len(means)
        moved = [value - mean + level for values, mean in zip(strata, means, strict=True) for value in values]
        return cls(tuple(min(max(value, 0.0), 1.0) for value in moved))

    @property
    def deviation(self) -> float:
        """Standard deviation of a cell's score."""
        mean = math.fsum(self.scores) / len(self.scores)
        return math.sqrt(math.fsum((score - mean) ** 2 for score in self.scores) / len(self.scores))

    def draw(self, random: np.random.Generator, shape: tuple[int, int], drop: float) -> Floats:
        """Return scores whose mean is `drop` below what it is without a drop."""
        ordered = np.sort(np.array(self.scores))
        low = ordered[: max(len(ordered) // 2, 1)]
        drawn = random.choice(ordered, size=shape)
        room = float(ordered.mean() - low.mean())
        if room <= drop:
            return np.maximum(drawn - drop, 0.0)
        return np.where(random.random(shape) < drop / room, random.choice(low, size=shape), drawn)


def _mean(values: Shares) -> float:
    return math.fsum(score * share for score, share in values)


def _pick(random: np.random.Generator, shape: tuple[int, int], values: Shares) -> Floats:
    scores = np.array([score for score, _ in values])
    return scores[random.choice(len(values), size=shape, p=[share for _, share in values])]
