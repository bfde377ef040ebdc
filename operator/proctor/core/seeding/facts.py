"""Facts for graders: queries over the seeded rows, so that what is held to be true can't drift from the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Protocol

from proctor.errors import InvalidInput

FactValue = int | str
"""A fact as a record holds it; a decimal is text, so that no digit is lost on the way."""


class FactQuery(Protocol):
    """A fact of an answer key: a query of one row and one column, and what that is."""

    @property
    def sql(self) -> str:
        """A SELECT; tables are named without a database."""
        ...

    @property
    def type(self) -> str:
        """``integer``, ``decimal`` or ``text``."""
        ...


@dataclass(frozen=True)
class FactSheet:
    """The fact queries of one answer key.

    Attributes:
        digest: the queries' digest: what a record holds their facts under.
        source: the digest of the file they were read from: known without parsing it.
        queries: the queries, by the facts' names.
    """

    digest: str
    source: str
    queries: Mapping[str, FactQuery]


def read_fact(name: str, kind: str, rows: list[tuple[object, ...]]) -> FactValue:
    """Return a fact from what its query returned.

    Raises:
        InvalidInput: the query returned another shape or type than it declares.
    """
    if len(rows) != 1 or len(rows[0]) != 1:
        raise InvalidInput(f"fact `{name}`: the query must return one row of one column, not {len(rows)} rows")
    text = str(rows[0][0])
    try:
        if kind == "integer":
            return int(text)
        if kind == "decimal":
            return format(Decimal(text), "f")
    except (ValueError, InvalidOperation) as error:
        raise InvalidInput(f"fact `{name}`: {text!r} is no {kind}") from error
    return text
