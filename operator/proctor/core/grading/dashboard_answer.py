"""The form of dashboards that an agent hands in: a closed, bounded JSON document.

In it, and so in the brief that describes it, a dashboard is a board: the other word is in a scenario's name.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from proctor.core.grading.artifact_answer import AnswerPart

MAX_TILES = 24

_Id = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
_FilterId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
_Title = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_Sql = Annotated[str, StringConstraints(min_length=8, max_length=8000)]


class TileKind(StrEnum):
    """How a tile shows its rows."""

    NUMBER = "number"
    LINE = "line"
    BAR = "bar"
    PIE = "pie"
    HEATMAP = "heatmap"
    TABLE = "table"
    LOGS = "logs"


class Link(AnswerPart):
    """What a click on a row does."""

    board: _Id = Field(description="The board that opens.")
    filter: _FilterId = Field(description="Its filter that is set to the first value of the row.")


class Tile(AnswerPart):
    """One query and how it is shown."""

    id: _Id = Field(description="Which request it answers.")
    title: _Title = Field(description="For people.")
    kind: TileKind = Field(description="How rows are shown.")
    sql: _Sql = Field(description="One SELECT over unqualified tables; `{id:String}` is a filter's value.")
    link: Link | None = Field(default=None, description="What a click on a row does.")


class Filter(AnswerPart):
    """What a dashboard may be narrowed to."""

    id: _FilterId = Field(description="Its name in tiles.")
    sql: _Sql = Field(description="One SELECT of one column: the values to choose from.")


class Board(AnswerPart):
    """Tiles that belong together."""

    id: _Id = Field(description="Its name in links.")
    title: _Title = Field(description="For people.")
    filters: list[Filter] = Field(default=[], max_length=10, description="What it may be narrowed to.")
    tiles: list[Tile] = Field(min_length=1, max_length=MAX_TILES, description="Its tiles.")


class Declined(AnswerPart):
    """A request that the data can't answer."""

    id: _Id = Field(description="The request.")
    reason: Annotated[str, StringConstraints(min_length=1, max_length=1000)] = Field(description="Why it can't.")


class Submission(AnswerPart):
    """The whole answer."""

    boards: list[Board] = Field(min_length=1, max_length=10, description="At least one.")
    declined: list[Declined] = Field(default=[], max_length=20, description="Requests that the data can't answer.")

    @model_validator(mode="after")
    def _commits(self) -> Self:
        """Each id stands once: two tries at one request are none."""
        tiles = [tile.id for board in self.boards for tile in board.tiles]
        filters = [one.id for board in self.boards for one in board.filters]
        for what, ids in (
            ("boards", [board.id for board in self.boards]),
            ("tiles", tiles),
            ("filters", filters),
            ("declined requests", [one.id for one in self.declined]),
        ):
            if len(set(ids)) < len(ids):
                raise ValueError(f"two {what} have the same id")
        if len(tiles) > MAX_TILES:
            raise ValueError(f"there are more than {MAX_TILES} tiles")
        return self
