"""Digests of tables: what "the same rows" means, whatever their order, parts or threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from proctor.core.digests import digest_json
from proctor.core.seeding.rollups import ROLLED_UP, key_table, kv_table
from proctor.core.seeding.sql import name_table


class TableDigest(NamedTuple):
    """A table's rows.

    Attributes:
        rows: how many.
        digest: a sum and an exclusive or of the rows' hashes: independent of order, sensitive to every bit.
    """

    rows: int
    digest: str


def digest_query(database: str, table: str) -> str:
    """Return the query of a table's digest; a rollup's rows are first brought to their merged form."""
    source = name_table(database, table)
    for raw in ROLLED_UP:
        if table == kv_table(raw):
            source = f"({_merged(source, 'Timestamp, ColumnIdentifier, Key, Value')})"
        elif table == key_table(raw):
            source = f"({_merged(source, 'Timestamp, ColumnIdentifier, Key')})"
    return (
        "SELECT count() AS rows, sum(bits) AS total, groupBitXor(bits) AS parity"
        f" FROM (SELECT cityHash64(*) AS bits FROM {source})"
    )


def read_digest(row: Sequence[object]) -> TableDigest:
    """Return the digest that `digest_query` found."""
    rows, total, parity = (int(str(value)) for value in row)
    return TableDigest(rows, f"{total:016x}{parity:016x}")


def digest_tables(digests: Mapping[str, TableDigest]) -> str:
    """Return one digest for all tables of a dataset."""
    return digest_json({name: [one.rows, one.digest] for name, one in digests.items()})


def _merged(source: str, keys: str) -> str:
    return f"SELECT {keys}, sum(count) AS count FROM {source} GROUP BY {keys}"
