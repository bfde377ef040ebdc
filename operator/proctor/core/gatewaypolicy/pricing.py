"""What a model call costs: tokens as the provider counted them, times the suite's price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Self

_MILLION = Decimal(1_000_000)
MAX_COUNT = 10**9
"""A provider's count above this is a fault of the provider; it is cut, so that sums stay within the store's columns."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call.

    Attributes:
        input_tokens: neither read from a cache nor written to one.
        output_tokens: what the model produced.
        cache_read_tokens: input read from the cache.
        cache_write_tokens: input written to the cache.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read the ``usage`` object of a Messages reply; what is missing or odd counts as 0."""
        usage = value if isinstance(value, Mapping) else {}
        return cls(
            _count(usage.get("input_tokens")),
            _count(usage.get("output_tokens")),
            _count(usage.get("cache_read_input_tokens")),
            _count(usage.get("cache_creation_input_tokens")),
        )

    def updated(self, value: object) -> Usage:
        """Return the counts after a ``message_delta``: its figures are totals, and it may leave some out."""
        usage = value if isinstance(value, Mapping) else {}
        names = {
            "input_tokens": "input_tokens",
            "output_tokens": "output_tokens",
            "cache_read_input_tokens": "cache_read_tokens",
            "cache_creation_input_tokens": "cache_write_tokens",
        }
        given = {mine: _count(usage[theirs]) for theirs, mine in names.items() if isinstance(usage.get(theirs), int)}
        return replace(self, **given)

    @property
    def total(self) -> int:
        """All tokens, cached ones too."""
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """US dollars per million tokens."""

    input_per_mtok: Decimal
    output_per_mtok: Decimal
    cache_read_per_mtok: Decimal
    cache_write_per_mtok: Decimal

    def cost(self, usage: Usage) -> Decimal:
        """Return the price of a call, exactly."""
        return (
            self.input_per_mtok * usage.input_tokens
            + self.output_per_mtok * usage.output_tokens
            + self.cache_read_per_mtok * usage.cache_read_tokens
            + self.cache_write_per_mtok * usage.cache_write_tokens
        ) / _MILLION


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return min(max(value, 0), MAX_COUNT)
