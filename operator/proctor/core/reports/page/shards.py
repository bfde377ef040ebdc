"""The cells' trajectories, packed: compressed, a few cells together, so that a page of hundreds opens at once.

Each shard is cut to its own share of the page. Long or random bodies shorten what their neighbours in one shard show,
and never the page's size.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from proctor.core.ids import CellKey
from proctor.core.reports.page.facts import CellFacts, CellTrajectory
from proctor.core.reports.page.payload import Cut, describe_cell

CELLS_PER_SHARD = 8
SIGNS_PER_CELL = 7_000
"""Of the packed text. 200 cells then take 1.4 MB, which leaves the rest of the page a third of its 2 MB."""

_CUTS = (Cut(4000, 400), Cut(1200, 300), Cut(400, 150), Cut(120, 80), Cut(0, 30))
FEW_CELLS = 500
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


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """Which cells are packed together, and how.

    Attributes:
        shards: the cells of each. They are in the order of their keys, in which a store has them side by side too:
            so some shards can be read and packed without the others.
    """

    shards: tuple[tuple[CellFacts, ...], ...]
    _packing: _Packing

    @classmethod
    def of(cls, cells: Sequence[CellFacts]) -> ShardPlan:
        """Plan the shards of a run's cells, `CELLS_PER_SHARD` in each."""
        ordered = sorted(cells, key=lambda cell: cell.key)
        return cls(tuple(_chunks(ordered)), _THOROUGH if len(cells) <= FEW_CELLS else _FAST)

    @property
    def places(self) -> dict[CellKey, int]:
        """Where each cell is: its shard's number times `CELLS_PER_SHARD`, and its place in it."""
        return {cell.key: place for place, cell in enumerate(cell for shard in self.shards for cell in shard)}

    def pack(self, number: int, trajectories: Mapping[CellKey, CellTrajectory]) -> str:
        """Return a shard packed with the first cut that fits; with the last if none does.

        Args:
            number: of the shard.
            trajectories: those of its cells, and maybe of others.
        """
        cells, packed = self.shards[number], ""
        for cut in self._packing.cuts:
            described = [describe_cell(cell, trajectories.get(cell.key), cut) for cell in cells]
            packed = pack(described, level=self._packing.level)
            if len(packed) <= self._packing.signs * len(cells):
                break
        return packed


def pack(value: object, *, level: int = _LEVEL) -> str:
    """Return a JSON value as base64 of its deflated text."""
    # It was built here, so it holds no circles; looking for them takes a tenth.
    text = json.dumps(value, ensure_ascii=False, check_circular=False, separators=(",", ":"))
    # A lone surrogate is made visible before it comes here; what is left of such must not stop a report.
    squeezed = zlib.compress(text.encode("utf-8", "replace"), level, wbits=_RAW_DEFLATE)
    return base64.b64encode(squeezed).decode("ascii")


def _chunks(cells: Sequence[CellFacts]) -> Iterator[tuple[CellFacts, ...]]:
    rest = iter(cells)
    while chunk := tuple(islice(rest, CELLS_PER_SHARD)):
        yield chunk
