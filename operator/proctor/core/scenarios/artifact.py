"""What an answer key says of an artifact: the kinds that may be asked for, and what is looked at in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from proctor.core.scenarios.document import Document, FactName, Slug

ReferenceSql = Annotated[
    str,
    Field(min_length=8, max_length=10_000, description="One SELECT over unqualified table names; `<<fact>>` as above."),
]
Weight = Annotated[int, Field(ge=1, le=20, description="Its share of the score.")]
Given = Annotated[
    dict[FactName, Annotated[str, StringConstraints(min_length=1, max_length=200)]],
    Field(default={}, max_length=10, description="Values of filters, by id; queries see them as `{id:String}`."),
]


class ArtifactCheck(Document):
    """What every check of an artifact has."""

    id: Slug = Field(description="Its name in grades and reports.")
    weight: Weight
    about: str = Field(min_length=3, max_length=300, description="What it looks for.")


class TileEquals(ArtifactCheck):
    """Met where a tile returns the reference's rows and no others, in any order, over all data and over half."""

    kind: Literal["tile-equals"] = "tile-equals"
    tile: Slug = Field(description="The tile's id, which the brief states.")
    reference: ReferenceSql
    within: Decimal = Field(default=Decimal(0), ge=0, le=Decimal("0.2"), description="How far off numbers may be.")
    given: Given


class FilterOffers(ArtifactCheck):
    """Met where a filter offers the reference's values and no others, and none where there are no rows."""

    kind: Literal["filter-offers"] = "filter-offers"
    filter: FactName = Field(description="The filter's id, which the brief states.")
    reference: ReferenceSql


class TilesExclude(ArtifactCheck):
    """Negative: pays as long as no value that the reference returns is in any tile's rows."""

    kind: Literal["tiles-exclude"] = "tiles-exclude"
    reference: ReferenceSql


class Declines(ArtifactCheck):
    """Met where a request is declined that the data can't answer, and nothing was made up for it."""

    kind: Literal["declines"] = "declines"
    request: Slug = Field(description="The request's id, which the brief states.")


class Links(ArtifactCheck):
    """Met where a tile with rows opens a dashboard with a filter set that offers what is clicked on."""

    kind: Literal["links"] = "links"
    tile: Slug = Field(description="The tile's id.")
    filter: FactName = Field(description="The filter that a click sets to the first value of its row.")


DashboardCheck = Annotated[
    TileEquals | FilterOffers | TilesExclude | Declines | Links,
    Field(discriminator="kind", description="One check."),
]


class DashboardKey(Document):
    """An answer is one or more dashboards whose tiles are run over the dataset."""

    kind: Literal["dashboards"]
    given: Given
    checks: list[DashboardCheck] = Field(min_length=2, max_length=60, description="The rubric, in order.")

    @model_validator(mode="after")
    def _ids_differ(self) -> Self:
        _check_ids(self.checks)
        return self


Instant = Annotated[
    str, Field(min_length=4, max_length=60, description="In UTC, as 2026-11-30 12:00:00; a `<<fact>>`, as a rule.")
]


class Incident(Document):
    """Something that rules must find."""

    id: Slug = Field(description="Its name in grades and reports.")
    start: Instant = Field(alias="from", description="When it began.")
    until: Instant = Field(description="When it was over.")


class PlannedWork(Document):
    """A stretch of time in which nothing that happens is an incident."""

    start: Instant = Field(alias="from", description="When it began.")
    until: Instant = Field(description="When it was over.")


class Detects(ArtifactCheck):
    """Met where a rule begins to fire during the incident."""

    kind: Literal["detects"] = "detects"
    incident: Slug = Field(description="Which.")
    within: Annotated[int, Field(ge=1, le=1440)] | None = Field(
        default=None, description="So many minutes after it began, at most; left out: while it lasts."
    )


class Precise(ArtifactCheck):
    """Met where so large a share of what wakes people is an incident, and half of all incidents are found."""

    kind: Literal["precise"] = "precise"
    least: Decimal = Field(gt=0, le=1, description="The smallest share.")


class ListName(StrEnum):
    """The lists that an answer has beside its rules."""

    NOISE = "noise"
    THRESHOLD = "threshold"
    MISSING = "missing"


class Lists(ArtifactCheck):
    """Met where a list of the answer holds these names and no others."""

    kind: Literal["lists"] = "lists"
    names: ListName = Field(description="The list.")
    holds: str = Field(
        min_length=1, max_length=2000, description="Names with commas between them; `<<fact>>` as above."
    )


AlertCheck = Annotated[Detects | Precise | Lists, Field(discriminator="kind", description="One check.")]


class AlertsKey(Document):
    """An answer is a set of alert rules that are run over the dataset."""

    kind: Literal["alerts"]
    incidents: list[Incident] = Field(min_length=1, max_length=20, description="What rules must find.")
    planned: list[PlannedWork] = Field(default=[], max_length=10, description="Planned work.")
    grace: Annotated[int, Field(ge=0, le=120)] = Field(
        default=15,
        description="Minutes after an incident in which a rule that begins to fire is neither right nor wrong.",
    )
    checks: list[AlertCheck] = Field(min_length=2, max_length=60, description="The rubric, in order.")

    @model_validator(mode="after")
    def _ids_hold(self) -> Self:
        _check_ids(self.checks)
        known = {one.id for one in self.incidents}
        for check in self.checks:
            if isinstance(check, Detects) and check.incident not in known:
                raise ValueError(f"checks.{check.id}: there is no incident {check.incident!r}")
        return self


ArtifactKey = Annotated[DashboardKey | AlertsKey, Field(discriminator="kind", description="The kinds of artifacts.")]


def _check_ids(checks: Sequence[ArtifactCheck]) -> None:
    ids = [check.id for check in checks]
    if len(set(ids)) < len(ids):
        raise ValueError("artifact.checks: two have the same id")


def list_texts(key: ArtifactKey) -> Iterator[str]:
    """Yield every text of a key; any may name facts."""
    yield from _texts(key.model_dump(mode="json"))


def fill_artifact(key: ArtifactKey, fill: Callable[[str], str]) -> ArtifactKey:
    """Return a key with facts in place of their names."""
    return type(key).model_validate(_filled(key.model_dump(mode="json"), fill))


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - whatever JSON holds
    match value:
        case str():
            yield value
        case dict():
            yield from (text for child in value.values() for text in _texts(child))
        case list():
            yield from (text for child in value for text in _texts(child))


def _filled(value: Any, fill: Callable[[str], str]) -> Any:  # noqa: ANN401 - whatever JSON holds
    match value:
        case str():
            return fill(value)
        case dict():
            return {name: _filled(child, fill) for name, child in value.items()}
        case list():
            return [_filled(child, fill) for child in value]
    return value
