"""Krippendorff's alpha."""

from __future__ import annotations

import random

import pytest

from proctor.core.grading.agreement import measure_agreement

_PUBLISHED = (
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)
"""Four observers, twelve units: the example of Krippendorff (2011), where the interval alpha is 0.849."""


def test_the_published_example() -> None:
    """Grading rule 6, P20: agreement is Krippendorff's alpha."""
    rows = [row.split() for row in _PUBLISHED]
    units = [[int(value) for value in column if value != "."] for column in zip(*rows, strict=True)]
    assert measure_agreement(units) == pytest.approx(0.849, abs=0.0005)


@pytest.mark.parametrize("units", [[], [[5]], [[5], [1]], [[4, 4], [4, 4]]])
def test_nothing_to_say(units: list[list[int]]) -> None:
    """Statistics: no division by zero, no NaN; one vote or one value for all shows no agreement and no lack of it."""
    assert measure_agreement(units) is None


def test_full_agreement_and_its_opposite() -> None:
    """P20: votes that are the same agree fully; votes that differ more than answers do agree less than chance."""
    assert measure_agreement([[1, 1, 1], [5, 5, 5]]) == 1
    alpha = measure_agreement([[0, 5], [5, 0]])
    assert alpha is not None
    assert alpha < 0


@pytest.mark.parametrize(("noise", "low", "high"), [(0, 1.0, 1.0), (1, 0.75, 0.97), (5, -0.15, 0.6)])
def test_a_noisy_judge_of_known_noise(noise: int, low: float, high: float) -> None:
    """P20: the noisier the judge, the lower its agreement."""
    chance = random.Random(7)  # noqa: S311 - no secret
    units = []
    for _ in range(400):
        true = chance.randint(0, 5)
        units.append([min(5, max(0, true + chance.randint(-noise, noise))) for _ in range(3)])
    alpha = measure_agreement(units)
    assert alpha is not None
    assert low <= alpha <= high
