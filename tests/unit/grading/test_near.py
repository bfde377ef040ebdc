"""Numbers that an answer may write a little otherwise than the key."""

from __future__ import annotations

from decimal import Decimal

import pytest
import re2

from proctor.core.grading.near import near_number
from proctor.core.scenarios.answer import Fact

CASES = [
    ("297", "0.02", ["292", "297.6", "302", "302.94", "297ms"], ["291", "303", "2970", "29", "1297"]),
    ("99", "0.05", ["95", "99", "100", "103"], ["94", "104", "9"]),
    (
        "50000",
        "0.03",
        ["50,000", "48500", "51500", "49,999", "50k", "49.5 k", "50 thousand"],
        ["48499", "51,501", "5000", "500000", "5k", "50m"],
    ),
    (
        "3000000",
        "0.02",
        ["3,000,000", "2980000", "3,059,999", "3m", "3.0 million", "3,000k"],
        ["3.0", "2,939,999", "300000"],
    ),
    ("0.58", "0.1", ["0.53", "0.638", "0.6", "0.60", "0.58"], ["0.5", "0.52", "0.7", "1", "10.58"]),
    ("8.3", "0.1", ["8", "8.3", "9.1", "8.34"], ["7.4", "10.2"]),
]


@pytest.mark.parametrize(
    ("number", "share", "text"), [(number, share, text) for number, share, near, _ in CASES for text in near]
)
def test_near_numbers_match(number: str, share: str, text: str) -> None:
    """Scenarios: a figure of another window, rounded otherwise, is the same figure."""
    assert re2.search(near_number(Decimal(number), Decimal(share)), f"it was {text}% then") is not None


@pytest.mark.parametrize(
    ("number", "share", "text"), [(number, share, text) for number, share, _, far in CASES for text in far]
)
def test_numbers_further_off_do_not(number: str, share: str, text: str) -> None:
    """Rubrics: a wrong figure earns nothing."""
    assert re2.search(near_number(Decimal(number), Decimal(share)), f"it was {text}% then") is None


@pytest.mark.parametrize("number", [*range(1, 130), 995, 1004, 9_990, 100_003])
def test_exactly_the_whole_numbers_between_match(number: int) -> None:
    """Every whole number in reach, and none beyond."""
    pattern = near_number(Decimal(number), Decimal("0.07"))
    reach = number * Decimal("0.07")
    for other in range(max(0, number * 9 // 10 - 3), number * 11 // 10 + 4, 1 if number < 2000 else 37):
        assert (re2.fullmatch(pattern, str(other)) is not None) == (abs(other - number) <= reach), other


def test_a_text_is_near_nothing() -> None:
    """Only numbers have neighbours."""
    with pytest.raises(ValueError, match="a text is written as it is"):
        Fact(sql="SELECT 'web'", type="text", within="0.1")
