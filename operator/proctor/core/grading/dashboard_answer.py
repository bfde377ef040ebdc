"""The form of dashboards that an agent hands in: a closed, bounded JSON document."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from proctor.core.grading.answer_text import MAX_ANSWER_BYTES
from proctor.core.grading.rows import Refused

MAX_TILES = 24

_Id = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
_FilterId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
_Title = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_Sql = Annotated[str, StringConstraints(min_length=8, max_length=8000)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class TileKind(StrEnum):
    """How a tile shows its rows."""

    NUMBER = "number"
    LINE = "line"
    BAR = "bar"
    PIE = "pie"
    HEATMAP = "heatmap"
    TABLE = "table"
    LOGS = "logs"


class Link(_Part):
    """What a click on a row does."""

    dashboard: _Id = Field(description="The dashboard that opens.")
    filter: _FilterId = Field(description="Its filter that is set to the first value of the row.")


class Tile(_Part):
    """One query and how it is shown."""

    id: _Id = Field(description="Which request it answers.")
    title: _Title = Field(description="For people.")
    kind: TileKind = Field(description="How rows are shown.")
    sql: _Sql = Field(description="One SELECT over unqualified tables; `{id:String}` is a filter's value.")
    link: Link | None = Field(default=None, description="What a click on a row does.")


class Filter(_Part):
    """What a dashboard may be narrowed to."""

    id: _FilterId = Field(description="Its name in tiles.")
    sql: _Sql = Field(description="One SELECT of one column: the values to choose from.")


class Dashboard(_Part):
    """Tiles that belong together."""

    id: _Id = Field(description="Its name in links.")
    title: _Title = Field(description="For people.")
    filters: list[Filter] = Field(default=[], max_length=10, description="What it may be narrowed to.")
    tiles: list[Tile] = Field(min_length=1, max_length=MAX_TILES, description="Its tiles.")


class Declined(_Part):
    """A request that the data can't answer."""

    id: _Id = Field(description="The request.")
    reason: Annotated[str, StringConstraints(min_length=1, max_length=1000)] = Field(description="Why it can't.")


class Submission(_Part):
    """The whole answer."""

    dashboards: list[Dashboard] = Field(min_length=1, max_length=10, description="At least one.")
    declined: list[Declined] = Field(default=[], max_length=20, description="Requests that the data can't answer.")

    @model_validator(mode="after")
    def _commits(self) -> Self:
        """Each id stands once: two tries at one request are none."""
        tiles = [tile.id for board in self.dashboards for tile in board.tiles]
        filters = [one.id for board in self.dashboards for one in board.filters]
        for what, ids in (
            ("dashboards", [board.id for board in self.dashboards]),
            ("tiles", tiles),
            ("filters", filters),
            ("declined requests", [one.id for one in self.declined]),
        ):
            if len(set(ids)) < len(ids):
                raise ValueError(f"two {what} have the same id")
        if len(tiles) > MAX_TILES:
            raise ValueError(f"there are more than {MAX_TILES} tiles")
        return self


def read_submission(answer: bytes) -> Submission | Refused:
    """Read an answer; whatever is in it, this does not raise."""
    text = answer[: MAX_ANSWER_BYTES + 1].decode("utf-8", "replace").strip()
    if len(answer) > MAX_ANSWER_BYTES:
        return Refused(f"it is longer than {MAX_ANSWER_BYTES} bytes")
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].removeprefix("json").strip()
    try:
        return Submission.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole"
        return Refused(f"it is no dashboards in JSON: {place}: {first['msg']}"[:300])
