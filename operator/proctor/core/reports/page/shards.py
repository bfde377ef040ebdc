"""The cells' trajectories, packed: compressed, a few cells together, so that a page of hundreds opens at once.

Each shard is cut to its own share of the page. Long or random bodies shorten what their neighbours in one shard show,
and never the page's size.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from proctor.core.reports.page.facts import CellFacts, RunFacts
from proctor.core.reports.page.payload import Cut, describe_cell

Spread = Callable[[Callable[[int], str], Sequence[int]], Iterable[str]]
"""Like `map`: applies a function to numbers, in whatever processes, and returns the results in order."""

CELLS_PER_SHARD = 8
SIGNS_PER_CELL = 7_000
"""Of the packed text. 200 cells then take 1.4 MB, which leaves the rest of the page a third of its 2 MB."""

_CUTS = (Cut(4000, 400), Cut(1200, 300), Cut(400, 150), Cut(120, 80), Cut(0, 30))
_FEW_CELLS = 500
_LEVEL = 6
_RAW_DEFLATE = -15


@dataclass(frozen=True, slots=True)
class _Packing:
    """How cells are packed.

    Attributes:
        cuts: to be tried, the most first.
        signs: room of a cell.
        level: of compression.
    """

    cuts: tuple[Cut, ...]
    signs: int
    level: int


_THOROUGH = _Packing(_CUTS, SIGNS_PER_CELL, _LEVEL)
_FAST = _Packing(_CUTS[1:], 2 * SIGNS_PER_CELL, 2)
"""Of thousands of cells most have little to show, and the others have room for it at the first try."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Some cells.

    Attributes:
        packed: base64 of deflated JSON, a list with one object per cell: letters, digits, ``+/=`` and nothing else.
    """

    number: int
    packed: str


def pack_cells(run: RunFacts, *, spread: Spread = map) -> tuple[Shard, ...]:
    """Return all cells of a run, `CELLS_PER_SHARD` in each shard, in order.

    Args:
        run: what there is to show.
        spread: does the work, shard by shard, where there are so many cells that it takes long.
    """
    chunks = tuple(_chunks(run.cells))
    are_few = len(run.cells) <= _FEW_CELLS
    packing = _THOROUGH if are_few else _FAST

    def pack_chunk(number: int) -> str:
        return _pack_within(run, chunks[number], packing)

    packed = (map if are_few else spread)(pack_chunk, range(len(chunks)))
    return tuple(Shard(number, text) for number, text in enumerate(packed))


def _pack_within(run: RunFacts, cells: Sequence[CellFacts], packing: _Packing) -> str:
    """Return cells packed with the first cut that fits; with the last if none does."""
    packed = ""
    for cut in packing.cuts:
        described = [describe_cell(cell, run.trajectories.get(cell.key), run.bodies, cut) for cell in cells]
        packed = pack(described, level=packing.level)
        if len(packed) <= packing.signs * len(cells):
            break
    return packed


def pack(value: object, *, level: int = _LEVEL) -> str:
    """Return a JSON value as base64 of its deflated text."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate is made visible before it comes here; what is left of such must not stop a report.
    squeezed = zlib.compress(text.encode("utf-8", "replace"), level, wbits=_RAW_DEFLATE)
    return base64.b64encode(squeezed).decode("ascii")


def _chunks(cells: Sequence[CellFacts]) -> Iterator[tuple[CellFacts, ...]]:
    rest = iter(cells)
    while chunk := tuple(islice(rest, CELLS_PER_SHARD)):
        yield chunk
