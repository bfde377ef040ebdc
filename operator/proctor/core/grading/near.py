"""Numbers near another, as a pattern: what an answer may write where its window or its rounding is not the key's."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

_MAX_PLACES = 3
_SCALES = ((Decimal(1000), "(?:k|thousand)"), (Decimal(1_000_000), "(?:m|mio|million)"))
_ENDING = r"(?:\b|[a-z]{1,3}\b)"
"""A unit may stand right after a number: "315ms"."""


def near_number(number: Decimal, share: Decimal) -> str:
    """Return the pattern of the numbers that differ from one by a share at most.

    They may have as many decimals as the number itself, or one less where the rounder one is near enough; decimals
    beyond these are read over. Thousands may have commas, or be written as ``50k`` and ``3.1 million``.
    """
    places = min(_MAX_PLACES, max(0, -int(number.as_tuple().exponent)))
    forms = [f"{form}{_ENDING}" for form in _forms(number, share, places)]
    for scale, word in _SCALES:
        if number >= scale:
            forms += [rf"{form} ?{word}\b" for form in _forms(number / scale, share, 2)]
            forms += [rf"{form} ?{word}\b" for form in _between(*_bounds(number / scale, share), 0)]
    return rf"\b(?:{'|'.join(forms)})"


def _forms(number: Decimal, share: Decimal, places: int) -> list[str]:
    low, high = _bounds(number, share)
    return [form for digits in range(max(0, places - 1), places + 1) for form in _between(low, high, digits)]


def _bounds(number: Decimal, share: Decimal) -> tuple[Decimal, Decimal]:
    reach = abs(number) * share
    return number - reach, number + reach


def _between(low: Decimal, high: Decimal, places: int) -> Iterator[str]:
    """Yield the patterns of numbers with so many decimals, 0 or more, between two bounds."""
    unit = Decimal(10) ** places
    first = max(0, int((low * unit).to_integral_value(ROUND_CEILING)))
    last = int((high * unit).to_integral_value(ROUND_FLOOR))
    for text in _stretches(first, last) if first <= last else ():
        yield _written(text, places)


def _stretches(first: int, last: int) -> Iterator[list[str]]:
    """Cut an interval of whole numbers into stretches whose digits vary independently; one pattern per digit."""
    while first <= last:
        size = 1
        while (
            first % (size * 10) == 0
            and first + size * 10 - 1 <= last
            and len(str(first + size * 10 - 1)) == len(str(first))
        ):
            size *= 10
        free = len(str(size)) - 1
        fixed = str(first)[: len(str(first)) - free]
        ending = min(9, int(fixed[-1]) + (last - first + 1) // size - 1)
        yield [*fixed[:-1], f"[{fixed[-1]}-{ending}]", *["[0-9]"] * free]
        first += (ending - int(fixed[-1]) + 1) * size


def _written(digits: list[str], places: int) -> str:
    """Put in the decimal point, and commas that may stand between thousands."""
    digits = ["0"] * (places + 1 - len(digits)) + digits
    whole, rest = digits[: len(digits) - places], digits[len(digits) - places :]
    grouped = "".join(
        digit + (",?" if (len(whole) - index) % 3 == 1 and index < len(whole) - 1 else "")
        for index, digit in enumerate(whole)
    )
    return grouped + (rf"\.{''.join(rest)}[0-9]{{0,3}}" if places else r"(?:\.[0-9]{1,3})?")
