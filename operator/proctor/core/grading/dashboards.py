"""Dashboards as answers: which queries they ask, and what their rows earn.

Nothing here asks a database: rows are handed in, and the same rows earn the same marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import assert_never

import re2

from proctor.core.grading.artifact_answer import SpoiltTrial, mark_check, read_json
from proctor.core.grading.dashboard_answer import Board, Filter, Submission, Tile
from proctor.core.grading.marks import Mark
from proctor.core.grading.rows import Extent, Fetched, FetchedRows, Question, Refused, Row, Rows
from proctor.core.scenarios.artifact import (
    DashboardCheck,
    DashboardKey,
    Declines,
    FilterOffers,
    Links,
    TileEquals,
    TilesExclude,
)
from proctor.errors import InvalidInput

_NUMBER = re2.compile(r"[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?")
_FRACTION = re2.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})\.0+")
_TILE_EXTENTS = (Extent.WHOLE, Extent.HALF)
_FILTER_EXTENTS = (Extent.WHOLE, Extent.NONE)
_QUOTED = 80
_SHOWN_ROWS = 3
_SHOWN_CHARS = 240

_Verdict = tuple[bool, str]
_Cell = str | Decimal


def read_dashboards(key: DashboardKey, answer: bytes) -> DashboardTrial | SpoiltTrial:
    """Read an answer that should be dashboards; whatever is in it, this does not raise."""
    submission = read_json(Submission, answer, "dashboards")
    if isinstance(submission, Refused):
        return SpoiltTrial(key.checks, submission.reason)
    return DashboardTrial(key, submission)


class DashboardTrial:
    """Dashboards, tried by one answer key.

    Args:
        key: what is looked at.
        submission: the answer.
    """

    def __init__(self, key: DashboardKey, submission: Submission) -> None:
        self._key = key
        self._given = key.given
        self._boards = submission.boards
        self._declined = {one.id: one for one in submission.declined}
        self._tiles = {tile.id: (board, tile) for board in submission.boards for tile in board.tiles}
        self._filters = {one.id: one for board in submission.boards for one in board.filters}

    @property
    def references(self) -> Sequence[Question]:
        """What the answer key asks."""
        return [question for check in self._key.checks for question in self._list_references(check)]

    @property
    def questions(self) -> Sequence[Question]:
        """What every tile and filter asks, as each check wants it asked."""
        asked = [self._ask_tile(board, tile) for board, tile in self._tiles.values()]
        asked += [Question(one.sql, extent=extent) for one in self._filters.values() for extent in _FILTER_EXTENTS]
        for check in self._key.checks:
            if isinstance(check, TileEquals) and check.tile in self._tiles:
                asked += [self._ask_tile(*self._tiles[check.tile], check, extent) for extent in _TILE_EXTENTS]
        return asked

    def mark(self, fetched: FetchedRows) -> tuple[Mark, ...]:
        """Return what the dashboards earn; to decline is a finding only beside a tile that is right.

        Raises:
            InvalidInput: a query of the key returns nothing, which any empty tile would equal.
        """
        found = {check.id: self._try(check, fetched) for check in self._key.checks if not isinstance(check, Declines)}
        shown = any(found[check.id][0] for check in self._key.checks if isinstance(check, TileEquals))
        for check in self._key.checks:
            if isinstance(check, Declines):
                met, why = self._find_declined(check)
                found[check.id] = (met and shown, why if shown else f"{why}, but no tile is right")
        return tuple(mark_check(check, met=found[check.id][0], why=found[check.id][1]) for check in self._key.checks)

    def _list_references(self, check: DashboardCheck) -> list[Question]:
        match check:
            case TileEquals():
                return [self._ask_reference(check, extent) for extent in _TILE_EXTENTS]
            case FilterOffers():
                return [Question(check.reference, extent=extent) for extent in _FILTER_EXTENTS]
            case TilesExclude():
                return [Question(check.reference)]
            case Declines() | Links():
                return []
        assert_never(check)

    def _ask_reference(self, check: TileEquals, extent: Extent) -> Question:
        return Question(check.reference, tuple(sorted((self._given | check.given).items())), extent)

    def _ask_tile(
        self, board: Board, tile: Tile, check: TileEquals | None = None, extent: Extent = Extent.WHOLE
    ) -> Question:
        given = self._given | (check.given if check else {})
        own = {one.id: given[one.id] for one in board.filters if one.id in given}
        return Question(tile.sql, tuple(sorted(own.items())), extent)

    def _try(self, check: DashboardCheck, fetched: FetchedRows) -> _Verdict:
        match check:
            case TileEquals():
                return self._compare_tile(check, fetched)
            case FilterOffers():
                return self._compare_filter(check, fetched)
            case TilesExclude():
                return self._exclude(check, fetched)
            case Declines():
                return self._find_declined(check)
            case Links():
                return self._follow_link(check, fetched)
        assert_never(check)

    def _compare_tile(self, check: TileEquals, fetched: FetchedRows) -> _Verdict:
        if check.tile in self._declined:
            return False, f"{check.tile!r} is declined"
        if check.tile not in self._tiles:
            return False, f"there is no tile {check.tile!r}"
        for extent in _TILE_EXTENTS:
            wanted = _wanted(check, extent, fetched[self._ask_reference(check, extent)])
            outcome = fetched[self._ask_tile(*self._tiles[check.tile], check, extent)]
            if (fault := _compare(wanted, outcome, check.within)) is not None:
                return False, f"tile {check.tile!r}{_over(extent)} {fault}"
        return True, f"tile {check.tile!r} returns {_show(_rows_of(outcome))} of half the rows, as it should"

    def _compare_filter(self, check: FilterOffers, fetched: FetchedRows) -> _Verdict:
        one = self._filters.get(check.filter)
        if one is None:
            return False, f"there is no filter {check.filter!r}"
        for extent in _FILTER_EXTENTS:
            wanted = _wanted(check, extent, fetched[Question(check.reference, extent=extent)])
            fault = _compare(wanted, fetched[Question(one.sql, extent=extent)], Decimal(0))
            if fault is not None:
                return False, f"filter {check.filter!r}{_over(extent)} {fault}"
        return True, f"filter {check.filter!r} offers what it should"

    def _exclude(self, check: TilesExclude, fetched: FetchedRows) -> _Verdict:
        banned = {_plain(cell) for row in _rows_of(fetched[Question(check.reference)]) for cell in row}
        for board, tile in self._tiles.values():
            for row in _rows_of(fetched[self._ask_tile(board, tile)]):
                for cell in row:
                    if _plain(cell) in banned:
                        return False, f"tile {tile.id!r} returns {str(cell)[:_QUOTED]!r}"
        return True, "no tile returns one"

    def _find_declined(self, check: Declines) -> _Verdict:
        if check.request in self._tiles:
            return False, f"there is a tile {check.request!r}, of data that do not exist"
        one = self._declined.get(check.request)
        return (
            (False, f"{check.request!r} is not declined") if one is None else (True, f"declined: {_quote(one.reason)}")
        )

    def _follow_link(self, check: Links, fetched: FetchedRows) -> _Verdict:
        if check.tile not in self._tiles:
            return False, f"there is no tile {check.tile!r}"
        board, tile = self._tiles[check.tile]
        link = tile.link
        if link is None or link.filter != check.filter:
            return False, f"a click on tile {tile.id!r} sets no filter {check.filter!r}"
        target = next((other for other in self._boards if other.id == link.board), None)
        if target is None or target.id == board.id:
            return False, f"a click on tile {tile.id!r} opens no other board"
        if all(one.id != check.filter for one in target.filters):
            return False, f"the board {target.id!r} has no filter {check.filter!r}"
        return self._match_clicks(board, tile, self._filters[check.filter], fetched)

    def _match_clicks(self, board: Board, tile: Tile, one: Filter, fetched: FetchedRows) -> _Verdict:
        clicked = {_plain(row[0]) for row in _rows_of(fetched[self._ask_tile(board, tile)]) if row}
        offered = {_plain(row[0]) for row in _rows_of(fetched[Question(one.sql)]) if row}
        if not clicked or not clicked <= offered:
            return False, f"what a click on tile {tile.id!r} gives is nothing that filter {one.id!r} offers"
        return True, f"a click on any of {len(clicked)} rows sets filter {one.id!r}"


def _wanted(check: DashboardCheck, extent: Extent, fetched: Fetched) -> tuple[Row, ...]:
    rows = _rows_of(fetched)
    if extent is Extent.WHOLE and not rows:
        raise InvalidInput(f"the reference of {check.id!r} returns no rows")
    return rows


def _compare(right: Sequence[Row], outcome: Fetched, within: Decimal) -> str | None:
    """Say how rows differ from what they should be; None where they don't."""
    if isinstance(outcome, Refused):
        return f"was refused: {_quote(outcome.reason)}"
    if len(outcome.rows) != len(right):
        return f"returns {len(outcome.rows)} rows, not {len(right)}: {_show(outcome.rows)}"
    left = [[_plain(cell) for cell in row] for row in outcome.rows]
    for row in right:
        cells = [_plain(cell) for cell in row]
        place = next((index for index, other in enumerate(left) if _are_same(cells, other, within)), None)
        if place is None:
            return f"lacks a row that it should have: {_show(outcome.rows)}"
        del left[place]
    return None


def _are_same(wanted: Sequence[_Cell], found: Sequence[_Cell], within: Decimal) -> bool:
    return len(wanted) == len(found) and all(
        abs(one - other) <= within * abs(one)
        if isinstance(one, Decimal) and isinstance(other, Decimal)
        else one == other
        for one, other in zip(wanted, found, strict=True)
    )


def _plain(cell: object) -> _Cell:
    """A number as such, however it is written; a text in any case; a time without a fraction that is 0."""
    text = str(cell).strip()
    if _NUMBER.fullmatch(text):
        return Decimal(text)
    whole = _FRACTION.fullmatch(text)
    return whole[1] if whole else text.casefold()


def _rows_of(fetched: Fetched) -> tuple[Row, ...]:
    return fetched.rows if isinstance(fetched, Rows) else ()


def _over(extent: Extent) -> str:
    return "" if extent is Extent.WHOLE else f", over {extent} of the rows,"


def _show(rows: Sequence[Row]) -> str:
    shown = "; ".join(", ".join(str(cell)[:_QUOTED] for cell in row) for row in rows[:_SHOWN_ROWS])
    return _quote(shown)


def _quote(text: str) -> str:
    """Escaped and bounded: what an agent or its rows say is shown, and is nothing more."""
    return repr(text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…")
