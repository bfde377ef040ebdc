"""Chance without state: every draw is a mix of its row's number and a key made from the seed and its names.

Nothing is drawn in sequence, so any slice of rows can be made alone, in any order, on any number of threads, and a
change of one stream's size moves no other row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def draw_key(seed: int, *path: str) -> int:
    """Return the 64-bit key of a stream, a draw or an identifier."""
    digest = hashlib.sha256("\0".join((str(seed), *path)).encode()).digest()
    return int.from_bytes(digest[:8], "big")


def pick_one(choices: Sequence[T], seed: int, *path: str) -> T:
    """Choose one value, as a row of SQL would: by a key, not by a generator's state."""
    return choices[draw_key(seed, *path) % len(choices)]


def shuffle_all(items: Sequence[T], seed: int, *path: str) -> tuple[T, ...]:
    """Put items into an order that depends on the key alone."""
    order = sorted(range(len(items)), key=lambda place: draw_key(seed, *path, str(place)))
    return tuple(items[place] for place in order)


def hex_id(digits: int, seed: int, *path: str) -> str:
    """Return an identifier of hexadecimal digits for a thing that is made once, such as a pod."""
    return hashlib.sha256("\0".join((str(seed), "hex", *path)).encode()).hexdigest()[:digits]
