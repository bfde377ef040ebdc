"""The two-stage rollups of traces and logs: which values exist, and which keys, per 15 minutes.

Production fills them by chained materialized views during the load. The views are here too, for their structure and for
whatever is inserted later; but the load's own rows are rolled up after it, grouping whole resource maps and scalar
tuples first. That gives the same rows several times as fast.
"""

from __future__ import annotations

from proctor.core.seeding.schema import LOGS, TRACES
from proctor.core.seeding.sql import name_table, quote

_MAPS = {
    TRACES: ("ResourceAttributes", "SpanAttributes"),
    LOGS: ("ResourceAttributes", "LogAttributes", "ScopeAttributes"),
}
_SCALARS = {
    TRACES: ("ServiceName", "SpanName", "SpanKind", "StatusCode", "ScopeName", "ScopeVersion"),
    LOGS: ("SeverityText", "ServiceName", "ScopeName", "ScopeVersion", "ResourceSchemaUrl", "ScopeSchemaUrl"),
}
_BUCKET = "toStartOfFifteenMinutes(Timestamp)"
_SUBSCRIPT = r"replaceRegexpAll({key}, '\\[\\d+\\]', '[*]')"
"""List subscripts are folded, or every index of every list would be a key."""

ROLLED_UP = (LOGS, TRACES)
"""The tables that have rollups."""


def kv_table(table: str) -> str:
    """Return the name of a table's rollup of keys and values."""
    return f"{table}_kv_rollup_15m"


def key_table(table: str) -> str:
    """Return the name of a table's rollup of keys."""
    return f"{table}_key_rollup_15m"


def create_rollups(database: str, table: str) -> list[str]:
    """Return the statements that create both rollup tables of a table."""
    return [
        _create(name_table(database, kv_table(table)), "Value"),
        _create(name_table(database, key_table(table)), ""),
    ]


def create_views(database: str, table: str) -> list[str]:
    """Return the statements that create both materialized views of a table."""
    kv, key = kv_table(table), key_table(table)
    chain = ((key, _select_keys(database, table)), (kv, _select_values(database, table)))
    return [
        _create_view(name_table(database, f"{target}_mv"), name_table(database, target), select)
        for target, select in chain
    ]


def _create_view(view: str, target: str, select: str) -> str:
    return f"CREATE MATERIALIZED VIEW {view} TO {target} AS\n{select}"


def fill_rollups(database: str, table: str) -> list[str]:
    """Return the statements that fill both rollups of a loaded table."""
    kv, key = name_table(database, kv_table(table)), name_table(database, key_table(table))
    return [
        f"INSERT INTO {kv} (Timestamp, ColumnIdentifier, Key, Value, count)\n{_select_grouped(database, table)}",
        f"INSERT INTO {key} (Timestamp, ColumnIdentifier, Key, count)\n{_select_keys(database, table)}",
    ]


def _create(name: str, value: str) -> str:
    columns = ["`Timestamp` DateTime", "`ColumnIdentifier` LowCardinality(String)", "`Key` LowCardinality(String)"]
    columns += [f"`{value}` String"] if value else []
    columns += [
        "`count` UInt64",
        "INDEX idx_count_minmax count TYPE minmax GRANULARITY 1",
        "INDEX idx_timestamp_minmax Timestamp TYPE minmax GRANULARITY 1",
    ]
    body = ",\n    ".join(columns)
    order = f"(ColumnIdentifier, Key, Timestamp{', Value' if value else ''})"
    return (
        f"CREATE TABLE {name}\n(\n    {body}\n)\nENGINE = SummingMergeTree\nPARTITION BY toDate(Timestamp)\n"
        f"ORDER BY {order}\nSETTINGS index_granularity = 8192, ttl_only_drop_parts = 1"
    )


def _select_keys(database: str, table: str) -> str:
    kv = name_table(database, kv_table(table))
    return (
        "SELECT Timestamp, ColumnIdentifier, Key, sum(count) AS count\n"
        f"FROM {kv}\nGROUP BY ColumnIdentifier, Key, Timestamp"
    )


def _select_values(database: str, table: str) -> str:
    """Return the view's SELECT: every entry of every map, and every scalar, row by row."""
    source = name_table(database, table)
    parts = [
        f"SELECT {_BUCKET} AS Timestamp, {quote(column)} AS ColumnIdentifier,"
        f" {_SUBSCRIPT.format(key='entry.1')} AS Key,"
        f" CAST(entry.2 AS String) AS Value FROM {source} ARRAY JOIN {column} AS entry"
        for column in _MAPS[table]
    ]
    parts += [
        f"SELECT {_BUCKET} AS Timestamp, 'NativeColumn' AS ColumnIdentifier, {quote(column)} AS Key,"
        f" CAST({column} AS String) AS Value FROM {source}"
        for column in _SCALARS[table]
    ]
    union = "\n    UNION ALL\n    ".join(parts)
    return (
        f"WITH elements AS (\n    {union}\n)\n"
        "SELECT Timestamp, ColumnIdentifier, Key, Value, count() AS count FROM elements\n"
        "GROUP BY Timestamp, ColumnIdentifier, Key, Value"
    )


def _select_grouped(database: str, table: str) -> str:
    """Return the SELECT that gives the view's rows after grouping what is alike in many rows."""
    source = name_table(database, table)
    parts = [_unfold_resources(source), *(_unfold_map(source, column) for column in _MAPS[table][1:])]
    scalars = ", ".join(_SCALARS[table])
    pairs = ", ".join(f"({quote(column)}, CAST({column} AS String))" for column in _SCALARS[table])
    parts.append(
        "SELECT bucket, 'NativeColumn' AS ColumnIdentifier, pair.1 AS Key, pair.2 AS Value, n"
        f" FROM (SELECT {_BUCKET} AS bucket, {scalars}, count() AS n FROM {source} GROUP BY bucket, {scalars})"
        f" ARRAY JOIN [{pairs}] AS pair"
    )
    union = "\n    UNION ALL\n    ".join(parts)
    return (
        "SELECT bucket AS Timestamp, ColumnIdentifier, Key, Value, sum(n) AS count FROM (\n"
        f"    {union}\n)\nGROUP BY Timestamp, ColumnIdentifier, Key, Value"
    )


def _unfold_resources(source: str) -> str:
    """Few instances make all rows: their maps are grouped whole, by hash, before they are unfolded."""
    grouped = (
        f"SELECT {_BUCKET} AS bucket, any(ResourceAttributes) AS entries, count() AS n FROM {source}"
        " GROUP BY bucket, cityHash64(ResourceAttributes)"
    )
    key = _SUBSCRIPT.format(key="CAST(entry.1 AS String)")
    return (
        f"SELECT bucket, 'ResourceAttributes' AS ColumnIdentifier, {key} AS Key, entry.2 AS Value, n"
        f" FROM ({grouped}) ARRAY JOIN entries AS entry"
    )


def _unfold_map(source: str, column: str) -> str:
    """Whole maps of attributes hardly repeat: entries are grouped one by one; only groups are cast and rewritten."""
    key = _SUBSCRIPT.format(key="CAST(name AS String)")
    grouped = (
        f"SELECT {_BUCKET} AS bucket, entry.1 AS name, entry.2 AS Value, count() AS n"
        f" FROM {source} ARRAY JOIN {column} AS entry GROUP BY bucket, name, Value"
    )
    return f"SELECT bucket, {quote(column)} AS ColumnIdentifier, {key} AS Key, Value, n FROM ({grouped})"
