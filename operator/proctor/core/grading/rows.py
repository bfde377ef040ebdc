"""What is asked of a dataset for the sake of a grade, and what comes back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

Row = tuple[object, ...]


class Extent(StrEnum):
    """Over which of the dataset's rows a query runs: what is computed follows, what is written down does not."""

    WHOLE = "whole"
    HALF = "half"
    NONE = "none"


class Question(NamedTuple):
    """A query, and what it is run with.

    Attributes:
        sql: one SELECT.
        given: values of its parameters, ``{name:String}`` in the query.
        extent: over which rows.
    """

    sql: str
    given: tuple[tuple[str, str], ...] = ()
    extent: Extent = Extent.WHOLE


@dataclass(frozen=True, slots=True)
class Rows:
    """What a query returned."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a query returned nothing: it is at fault itself."""

    reason: str


Fetched = Rows | Refused
FetchedRows = Mapping[Question, Fetched]


class RowSource(Protocol):
    """Asks a dataset as the restricted user that agents are."""

    async def fetch(self, questions: Iterable[Question]) -> FetchedRows:
        """Return what each query gives; one that is at fault itself is `Refused`.

        Raises:
            Retryable: the dataset is away.
        """
        ...
