"""Named markers: how a scripted model reads values from whatever form a server wraps its rows in."""

from __future__ import annotations

import re
from collections.abc import Mapping

import re2

_OPEN = r"(?:(?:<|&lt;|\\{1,8}u003[cC]){2})"
_CLOSE = r"(?:(?:>|&gt;|\\{1,8}u003[eE]){2})"
_READING = re2.compile(_OPEN + r"([a-z][a-z0-9_]{0,39})=([^<>\x00-\x1f]*?)" + _CLOSE)
"""``<<failures=8>>``; encoders that are careful about HTML write the brackets as entities or as JSON escapes."""

_PLACE = re.compile(r"<<([a-z][a-z0-9_]{0,39})>>")
"""Runs on a scenario's own text only, and is linear: one bounded class between fixed signs."""

_MAX_TEXT = 8_500_000
"""A little more than the gateway lets through as one reply of a tool."""

_MAX_VALUE = 4000
_ESCAPED_QUOTE = re.compile(r"\\+([\"'/])")


def find_markers(text: str) -> dict[str, str]:
    """Return each marker's first value in a tool's reply."""
    found: dict[str, str] = {}
    for match in _READING.finditer(text[:_MAX_TEXT]):
        name, value = match.group(1), match.group(2)
        if name not in found and len(value) <= _MAX_VALUE:
            found[name] = _ESCAPED_QUOTE.sub(r"\1", value)
    return found


def marker_names(text: str) -> set[str]:
    """Return the names of the places ``<<name>>`` that a text wants filled."""
    return set(_PLACE.findall(text))


def fill_markers(text: str, values: Mapping[str, str]) -> str:
    """Put values in the places ``<<name>>``; one pass, so that a value is never read as a place."""
    return _PLACE.sub(lambda place: values.get(place[1], place[0]), text)
