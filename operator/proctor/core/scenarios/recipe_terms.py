"""Small terms that every part of a recipe is made of: names, spans of time, conditions, templates."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

NANOSECONDS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
"""The units of a recipe's times; every time inside is an integer of nanoseconds."""

_DURATION = re.compile(r"(-?\d{1,12})(ns|us|ms|s|m|h)")
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)?)\}|[{}]")

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
"""A name inside a recipe; it becomes an SQL alias, so its alphabet is closed."""

Reference = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}(\.[a-z][a-z0-9_]{0,39})?$")]
"""A draw, or a field of the pool row that the draw chose: ``tier``, ``operation.route``."""

ServiceName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,59}$")]
Owner = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,59}$")]
"""A service or a draw; where both have the name, the service is meant."""

Word = Annotated[str, StringConstraints(min_length=1, max_length=200)]
AttributeKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.\[\]-]{0,119}$")]
Weight = Annotated[int, Field(ge=0, le=1_000_000)]


class Closed(BaseModel):
    """Base of every part of a recipe: unknown fields are refused, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


def parse_duration(text: str) -> int:
    """Read ``90s``, ``-5m`` or ``15ms`` as nanoseconds.

    Raises:
        ValueError: the text is no such term.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no span of time: write a whole number and one of ns, us, ms, s, m, h")
    return int(match[1]) * NANOSECONDS[match[2]]


def _checked_duration(text: str) -> str:
    parse_duration(text)
    return text


Duration = Annotated[str, StringConstraints(max_length=20), AfterValidator(_checked_duration)]
"""A span of time or an offset from the anchor: ``15ms``, ``-5m``, ``0s``."""

Quantity = int | Duration
"""A whole number, or a span of time (then it counts nanoseconds)."""


def nanoseconds(quantity: int | str) -> int:
    """Return a quantity as the integer that SQL computes with."""
    return quantity if isinstance(quantity, int) else parse_duration(quantity)


def split_template(template: str) -> tuple[tuple[str, bool], ...]:
    """Cut a template into literal text and references: ``(("wait ", False), ("pause.ms", True))``.

    Only declared names are ever put in: there are no expressions, filters or loops to misuse.

    Raises:
        ValueError: a brace that is neither part of ``{name}`` nor doubled.
    """
    pieces: list[tuple[str, bool]] = []
    literal, position = "", 0
    for match in _PLACEHOLDER.finditer(template):
        literal += template[position : match.start()]
        position = match.end()
        if match[1]:
            if literal:
                pieces.append((literal, False))
            pieces.append((match[1], True))
            literal = ""
        elif match[0] in {"{{", "}}"}:
            literal += match[0][0]
        else:
            raise ValueError(f"{template!r}: a lone {match[0]!r}; write {match[0] * 2!r} for a literal brace")
    literal += template[position:]
    if literal:
        pieces.append((literal, False))
    return tuple(pieces)


def _checked_template(template: str) -> str:
    split_template(template)
    return template


Template = Annotated[str, StringConstraints(max_length=2000), AfterValidator(_checked_template)]
"""Literal text with ``{draw}``, ``{draw.field}`` or ``{draw.ms}`` in it; ``{{`` is a literal brace."""


class Within(Closed):
    """A stretch of time, in offsets from the anchor, that may come round again."""

    start: Duration = Field(alias="from", description="Where it begins, as an offset from the anchor: `-10m`.")
    until: Duration = Field(default="0s", description="Where it ends (not included), as an offset from the anchor.")
    every: Duration | None = Field(default=None, description="Make it a series of bursts that far apart.")
    lasting: Duration | None = Field(default=None, description="How long each burst of the series lasts.")


class AtLeastMost(Closed):
    """An interval of a number."""

    least: Quantity | None = Field(default=None, description="The smallest number that matches.")
    most: Quantity | None = Field(default=None, description="The largest number that matches.")


Matcher = int | Word | Annotated[list[int | Word], Field(min_length=1, max_length=200)] | Within | AtLeastMost
"""What a condition asks of a reference: a value, one of several, a stretch of time, or an interval."""

When = Annotated[dict[Reference, Matcher], Field(min_length=1, max_length=8)]
"""A condition: every entry must hold. (For "or", write two cases.)"""


class TextCase(Closed):
    """One alternative of a text."""

    when: When = Field(description="The condition under which this text is used.")
    text: Template = Field(description="The text.")


class TextCases(Closed):
    """A text that depends on draws: the first case whose condition holds wins."""

    cases: list[TextCase] = Field(min_length=1, max_length=40, description="Tried in order.")
    otherwise: Template = Field(description="The text when no case holds.")


Text = Template | TextCases
