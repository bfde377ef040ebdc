"""Draws: the named chances of one row. Each is an integer computed from (seed, stream, draw, row) alone."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from proctor.core.scenarios.recipe_terms import Closed, Duration, Name, Owner, Quantity, When, Within, Word

Share = Annotated[Decimal, Field(ge=0, le=1, decimal_places=6)]
"""A probability, to a millionth."""


class Pick(Closed):
    """Choose a row of a pool, by the pool's weights."""

    pick: Name = Field(description="The pool; `services` is the pool of all services.")
    where: dict[Name, Name] = Field(
        default_factory=dict,
        max_length=1,
        description="Choose among the rows whose field equals another pick: `{service: caller}`.",
    )
    only: list[Word] | None = Field(
        default=None, min_length=1, max_length=200, description="Only rows with these values, whatever their weight."
    )
    other_than: Name | None = Field(default=None, description="Never the row that this other pick of the pool chose.")


class Instance(Closed):
    """Choose one running instance of a service: its pod, node, version and all other resource attributes."""

    instance: Owner = Field(description="A service, or a pick from `services`.")
    among: list[Annotated[int, Field(ge=0, le=999)]] | None = Field(
        default=None, min_length=1, max_length=200, description="Only these instances, counted from 0."
    )


class Between(Closed):
    """A whole number or span of time, each value of the interval equally likely."""

    between: tuple[Quantity, Quantity] = Field(description="Smallest and largest value: `[15ms, 200ms]`.")


class Bucket(Closed):
    """One stretch of a table."""

    between: tuple[Quantity, Quantity] = Field(description="Smallest and largest value of the bucket.")
    weight: Annotated[int, Field(ge=1, le=10_000)] = Field(description="How often the bucket is chosen.")


class Table(Closed):
    """A distribution as weighted buckets, uniform within each: latencies, sizes."""

    table: list[Bucket] = Field(min_length=1, max_length=40, description="The buckets.")


class Chance(Closed):
    """1 with a probability, else 0."""

    chance: Share | Name = Field(description="The probability, or a draw that gives it in millionths (a curve, say).")


class Deal(Closed):
    """Rows of a pool in exact numbers, shuffled over the rows of a group: 3, 3 and 2 of three messages."""

    deal: Name = Field(description="The pool.")
    counts: list[Annotated[int, Field(ge=0, le=100_000)]] = Field(
        min_length=1, max_length=200, description="How many rows get each of the pool's rows, in the pool's order."
    )


class Period(Within):
    """One stretch of a time draw."""

    weight: Annotated[int, Field(ge=1, le=10_000)] = Field(default=1, description="How many rows fall into it.")


class Time(Closed):
    """An instant, to the nanosecond, anywhere in weighted stretches of time."""

    time: list[Period] = Field(min_length=1, max_length=200, description="The stretches; a ramp is several.")


class Each(Closed):
    """The row's place along one axis of a grid: every row of a pool in turn."""

    each: Owner = Field(description="The pool, or a service (then: each of its instances).")


class Ticks(Closed):
    """The row's place along the time axis of a grid: one instant per scrape."""

    ticks: Duration = Field(description="The time between two scrapes.")
    start: Duration = Field(alias="from", description="The first scrape, as an offset from the anchor.")
    until: Duration = Field(default="0s", description="The end (not included), as an offset from the anchor.")


class Value(Closed):
    """The same number on every row."""

    value: Quantity = Field(description="The number or span of time.")


class Sum(Closed):
    """Draws added up: a parent's duration around its children's."""

    sum: list[Name] = Field(min_length=1, max_length=12, description="The draws.")


class Minus(Closed):
    """One draw less another, never below 0."""

    minus: tuple[Name, Name] = Field(description="The draw, and what is taken off.")


class Scale(Closed):
    """A draw times a number of thousandths."""

    scale: Name = Field(description="The draw.")
    permille: Annotated[int, Field(ge=0, le=1_000_000)] | Name = Field(
        description="Thousandths, as a number or as a draw."
    )


class Curve(Closed):
    """A number that follows time in straight lines between points: ramps, drifts, sawtooths."""

    curve: Name = Field(description="The time draw along which it runs.")
    points: list[tuple[Duration, int]] = Field(
        min_length=2,
        max_length=100,
        description="Instant (offset from the anchor; with `repeat`, from the curve's start) and number, in order.",
    )
    start: Duration | None = Field(
        default=None, alias="from", description="With `repeat`: where the first round begins."
    )
    repeat: Duration | None = Field(
        default=None, description="Length of a round; before the start the first number holds."
    )
    stagger: Duration | None = Field(default=None, description="How much later each instance (see `by`) begins.")
    by: Name | None = Field(default=None, description="The pick, grid axis or instance that is staggered.")


class Upgraded(Closed):
    """1 once a rollout has reached the row's instance at the row's time, else 0."""

    upgraded: Name = Field(description="The rollout.")
    of: Name = Field(description="The instance draw.")
    at: Name = Field(description="The time draw.")


class Hex(Closed):
    """An identifier of hexadecimal digits, different on every row."""

    hex: Literal[8, 12, 16, 24, 32] = Field(description="How many digits.")


class DrawCase(Closed):
    """One alternative of a conditional draw."""

    when: When = Field(description="The condition.")
    then: Draw = Field(description="The draw under that condition.")


class Cases(Closed):
    """A draw that depends on others: the first case whose condition holds wins. Segment × condition → probability."""

    cases: list[DrawCase] = Field(min_length=1, max_length=40, description="Tried in order.")
    otherwise: Draw = Field(description="The draw when no case holds.")

    @model_validator(mode="after")
    def _plain_alternatives(self) -> Cases:
        for draw in [case.then for case in self.cases] + [self.otherwise]:
            if isinstance(draw, Cases | Each | Ticks | Deal | Hex):
                message = f"`{_kind(draw)}` can't be an alternative: give it a name of its own"
                raise ValueError(message)  # noqa: TRY004 - the error that pydantic reports as the input's fault
        return self


_KINDS = {
    "pick": Pick,
    "instance": Instance,
    "between": Between,
    "table": Table,
    "chance": Chance,
    "deal": Deal,
    "time": Time,
    "each": Each,
    "ticks": Ticks,
    "value": Value,
    "sum": Sum,
    "minus": Minus,
    "scale": Scale,
    "curve": Curve,
    "upgraded": Upgraded,
    "hex": Hex,
    "cases": Cases,
}


def _kind(draw: Any) -> str | None:  # noqa: ANN401 - pydantic hands in whatever the file holds
    """Return the key that tells which kind of draw this is."""
    if isinstance(draw, dict):
        return next((kind for kind in _KINDS if kind in draw), None)
    return next((kind for kind, model in _KINDS.items() if type(draw) is model), None)


Draw = Annotated[
    Annotated[Pick, Tag("pick")]
    | Annotated[Instance, Tag("instance")]
    | Annotated[Between, Tag("between")]
    | Annotated[Table, Tag("table")]
    | Annotated[Chance, Tag("chance")]
    | Annotated[Deal, Tag("deal")]
    | Annotated[Time, Tag("time")]
    | Annotated[Each, Tag("each")]
    | Annotated[Ticks, Tag("ticks")]
    | Annotated[Value, Tag("value")]
    | Annotated[Sum, Tag("sum")]
    | Annotated[Minus, Tag("minus")]
    | Annotated[Scale, Tag("scale")]
    | Annotated[Curve, Tag("curve")]
    | Annotated[Upgraded, Tag("upgraded")]
    | Annotated[Hex, Tag("hex")]
    | Annotated[Cases, Tag("cases")],
    Discriminator(
        _kind,
        custom_error_type="unknown_draw",
        custom_error_message="a draw has exactly one of the keys " + ", ".join(f"`{kind}`" for kind in _KINDS),
    ),
]
"""Any draw, told apart by its key."""

DrawCase.model_rebuild()
Cases.model_rebuild()
