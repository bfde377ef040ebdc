"""The few pieces of SQL text that everything is built of. All of a recipe's text passes through `quote`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"})

MIX = "intHash64"
"""One multiply-xorshift round with full avalanche; 3 times as fast as sipHash64 or cityHash64 of two arguments."""


def quote(text: str) -> str:
    """Return a string literal."""
    return f"'{text.translate(_ESCAPES)}'"


def name_table(database: str, table: str) -> str:
    """Return a qualified table name."""
    return f"`{database}`.`{table}`"


def list_strings(values: Iterable[str]) -> str:
    """Return an array literal of strings."""
    return "[" + ", ".join(quote(value) for value in values) + "]"


def list_numbers(values: Iterable[int]) -> str:
    """Return an array literal of integers."""
    return "[" + ", ".join(str(value) for value in values) + "]"


def look_up(values: Sequence[int] | Sequence[str], index: str) -> str:
    """Return the expression that takes the value at an index counted from 0; a constant if all are equal."""
    texts = [quote(value) if isinstance(value, str) else str(value) for value in values]
    if len(set(texts)) == 1:
        return texts[0]
    if texts == [str(place) for place in range(len(texts))]:
        return index
    return f"[{', '.join(texts)}][{index} + 1]"


def build_map(entries: Mapping[str, str]) -> str:
    """Return a map of constant keys and the expressions of their values."""
    if not entries:
        return "CAST(map(), 'Map(String, String)')"
    return "map(" + ", ".join(f"{quote(key)}, {value}" for key, value in entries.items()) + ")"


def concatenate(parts: Sequence[str]) -> str:
    """Return the expression of texts one after another."""
    if not parts:
        return "''"
    return parts[0] if len(parts) == 1 else f"concat({', '.join(parts)})"


def mix(row: str, key: int) -> str:
    """Return the 64 random bits that belong to a row and a key."""
    return f"{MIX}(bitXor({row}, {key}))"


def hexadecimal(number: str) -> str:
    """Return the 16 digits of a 64-bit number; `hex` of an integer would drop leading zeros."""
    return f"lower(hex(reinterpretAsFixedString({number})))"
