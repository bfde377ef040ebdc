"""The recipe: which telemetry a scenario's dataset holds, said once and compiled to SQL.

A recipe is a set of *streams*. A stream has rows, each row has *draws* (its chances), and emits spans, logs or metric
points. *Groups* are further rows of a stream with some draws or texts replaced: planted truth and decoys are groups,
so that they differ from ordinary traffic only in what the recipe says they differ in.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from proctor.core.digests import digest_bytes, digest_json
from proctor.core.scenarios.document import parse_document
from proctor.core.scenarios.recipe_draws import Draw
from proctor.core.scenarios.recipe_rows import Log, Metric, Span
from proctor.core.scenarios.recipe_terms import AttributeKey, Closed, Duration, Name, ServiceName, Text, Weight, Word
from proctor.core.scenarios.redraw import Redraw
from proctor.core.scenarios.variants import find_redraw
from proctor.core.seeding.identity import RECIPE_FILE, WRITTEN_SEED, digest_recipe, read_recipe, read_variants

Words = Annotated[list[Word], Field(min_length=1, max_length=50)]


class Numbered(Closed):
    """A pool too large to write down: a prefix and a number."""

    count: Annotated[int, Field(ge=1, le=10_000_000)] = Field(description="How many there are.")
    prefix: str = Field(default="", max_length=60, description="What stands before the number.")
    digits: Annotated[int, Field(ge=1, le=12)] = Field(default=1, description="The number is padded to so many digits.")
    first: Annotated[int, Field(ge=0, le=10**9)] = Field(default=1, description="The first number.")


class PoolRow(Closed):
    """One row of a pool: a weight and any fields."""

    weight: Weight = Field(default=1, description="How often it is picked.")
    fields: dict[Name, str | int] = Field(min_length=1, max_length=20, description="The row's fields.")

    @model_validator(mode="before")
    @classmethod
    def _gather_fields(cls, row: object) -> object:
        """Let a row be written flat: everything but the weight is a field."""
        if isinstance(row, dict) and "fields" not in row:
            fields = {key: value for key, value in row.items() if key != "weight"}
            return {"fields": fields} | ({"weight": row["weight"]} if "weight" in row else {})
        return row


class Pool(Closed):
    """A list to pick from. Exactly one of the three."""

    values: list[Word] | dict[Word, Weight] | None = Field(
        default=None, min_length=1, max_length=5000, description="Plain values, or values with weights."
    )
    rows: list[PoolRow] | None = Field(
        default=None, min_length=1, max_length=5000, description="Rows with fields; the first field is the row's value."
    )
    numbered: Numbered | None = Field(default=None, description="A prefix and a number.")

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if sum(part is not None for part in (self.values, self.rows, self.numbered)) != 1:
            raise ValueError("a pool has exactly one of `values`, `rows`, `numbered`")
        if self.rows and len({tuple(row.fields) for row in self.rows}) != 1:
            raise ValueError("all rows of a pool have the same fields in the same order")
        return self


class Resources(Closed):
    """The words from which instances' resource attributes are drawn, unless a service says its own."""

    namespaces: Words = Field(description="Kubernetes namespaces; also the deployment environment's name.")
    nodes: Words = Field(description="Kubernetes nodes; also the host's name.")
    regions: Words = Field(description="Cloud regions.")
    versions: Words = Field(description="Service versions.")


class Service(Closed):
    """A service and the instances that run it."""

    weight: Weight = Field(default=1, description="How often `pick: services` chooses it.")
    instances: Annotated[int, Field(ge=1, le=500)] = Field(default=4, description="How many instances run.")
    language: Word = Field(default="go", description="The SDK's language.")
    namespaces: Words | None = Field(default=None, description="Instead of the common ones.")
    nodes: Words | None = Field(
        default=None, description="Instead of the common ones; with as many as instances, one each."
    )
    regions: Words | None = Field(default=None, description="Instead of the common ones.")
    versions: Words | None = Field(default=None, description="Instead of the common ones.")
    attributes: dict[AttributeKey, Word] = Field(default_factory=dict, max_length=20, description="Further attributes.")
    omit: list[AttributeKey] = Field(default_factory=list, max_length=16, description="Standard attributes it lacks.")
    fields: dict[Name, str | int] = Field(
        default_factory=dict, max_length=20, description="Fields for texts and conditions; not attributes."
    )


class Rollout(Closed):
    """A change of version that reaches one instance after another."""

    service: ServiceName = Field(description="The service.")
    to: Word = Field(description="The new `service.version`, which shows unless the service omits it.")
    instances: list[Annotated[int, Field(ge=0, le=499)]] = Field(
        min_length=1, max_length=500, description="The instances that it reaches, in order, counted from 0."
    )
    start: Duration = Field(alias="from", description="When it reaches the first, as an offset from the anchor.")
    every: Duration = Field(description="The time from one instance to the next.")


class Scaling(StrEnum):
    """What a volume does to a number of rows."""

    VOLUME = "volume"
    FIXED = "fixed"


class Stream(Closed):
    """Rows of one shape."""

    note: str = Field(default="", max_length=500, description="What it is, for people.")
    rows: Annotated[int, Field(ge=0, le=10**9)] | None = Field(
        default=None, description="Rows at volume 1. Left out: the size of the grid that its `each` and `ticks` span."
    )
    scaling: Scaling = Field(default=Scaling.VOLUME, description="Whether the volume scales the rows.")
    draws: dict[Name, Draw] = Field(min_length=1, max_length=60, description="The row's chances, by name.")
    texts: dict[Name, Text] = Field(
        default_factory=dict, max_length=40, description="Texts with a name, for templates."
    )
    spans: dict[Name, Span] = Field(default_factory=dict, max_length=20, description="The hops of its trace.")
    logs: dict[Name, Log] = Field(default_factory=dict, max_length=20, description="Its log records.")
    metrics: dict[Name, Metric] = Field(default_factory=dict, max_length=40, description="Its metric points.")


class Role(StrEnum):
    """What a group is for."""

    PLANTED = "planted"
    DECOY = "decoy"
    ORDINARY = "ordinary"


class Group(Closed):
    """Further rows of a stream, of which some draws or texts are other: the planted truth, or a decoy."""

    note: str = Field(default="", max_length=500, description="What it is, for people.")
    of: Name = Field(description="The stream whose shape the rows have.")
    role: Role = Field(description="What the group is for.")
    rows: Annotated[int, Field(ge=1, le=10**9)] = Field(description="How many rows (at volume 1, if it scales).")
    scaling: Scaling = Field(default=Scaling.FIXED, description="Whether the volume scales the rows.")
    draws: dict[Name, Draw] = Field(default_factory=dict, max_length=60, description="Draws in place of the stream's.")
    texts: dict[Name, Text] = Field(default_factory=dict, max_length=40, description="Texts in place of the stream's.")


class Recipe(Closed):
    """All the telemetry of a scenario."""

    version: Literal[1] = Field(description="The language's version.")
    window: Duration = Field(description="How far back from the anchor the telemetry reaches.")
    resources: Resources = Field(description="Words for resource attributes.")
    services: dict[ServiceName, Service] = Field(min_length=1, max_length=500, description="The services.")
    rollouts: dict[Name, Rollout] = Field(default_factory=dict, max_length=20, description="Changes of version.")
    pools: dict[Name, Pool] = Field(default_factory=dict, max_length=200, description="Lists to pick from.")
    streams: dict[Name, Stream] = Field(min_length=1, max_length=60, description="Ordinary traffic.")
    groups: dict[Name, Group] = Field(default_factory=dict, max_length=60, description="Planted truth and decoys.")

    @model_validator(mode="after")
    def _known_names(self) -> Self:
        if "services" in self.pools:
            raise ValueError("pools: `services` is the pool of all services and can't be declared")
        for name, group in self.groups.items():
            if group.of not in self.streams:
                raise ValueError(f"groups.{name}.of: there is no stream `{group.of}`")
            if name in self.streams:
                raise ValueError(f"groups.{name}: a stream has that name")
        for name, rollout in self.rollouts.items():
            if rollout.service not in self.services:
                raise ValueError(f"rollouts.{name}.service: there is no service `{rollout.service}`")
            if max(rollout.instances) >= self.services[rollout.service].instances:
                raise ValueError(f"rollouts.{name}.instances: `{rollout.service}` has fewer instances")
        return self

    _digest: str | None = PrivateAttr(default=None)

    @property
    def digest(self) -> str:
        """What the recipe is known by: the digest of its file, or of its content where there is no file."""
        return self._digest or digest_json(self.model_dump(mode="json", by_alias=True))


def parse_recipe(text: str, source: str = RECIPE_FILE, redraw: Redraw | None = None) -> Recipe:
    """Read a recipe.

    Raises:
        InvalidInput: the text is no recipe; the message names line and field.
    """
    recipe = parse_document(text, Recipe, source, redraw)
    recipe._digest = digest_bytes(text.encode())  # noqa: SLF001 - set once, before anybody sees the model
    return recipe


def load_recipe(folder: Path, seed: int = WRITTEN_SEED) -> Recipe:
    """Read the recipe of a scenario folder as a dataset seed has it.

    Raises:
        InvalidInput: there is none, or it is no recipe.
    """
    text = read_recipe(folder)
    recipe = parse_recipe(text, str(folder / RECIPE_FILE), find_redraw(folder, seed))
    recipe._digest = digest_recipe(text, read_variants(folder), seed)  # noqa: SLF001 - as above
    return recipe
