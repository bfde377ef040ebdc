"""Telling planted rows from ordinary ones by their structure alone: what must not work."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from threadpoolctl import threadpool_limits

from proctor.adapters.clickhouse import datasets
from proctor.adapters.clickhouse.session import HttpSession
from proctor.core.scenarios.recipe import Recipe
from proctor.core.seeding.plan import compile_plan
from support.seeding import ANCHOR

HIGHEST_AUC = 0.53

# Structural columns: digits of instants and durations, digits and shape of identifiers, which attributes exist, size of
# the trace, place in the table. None of them is content: no text, no value of an attribute, no time of day, no length.
COMMON = {
    "below_microsecond": "toUnixTimestamp64Nano(Timestamp) % 1000",
    "below_millisecond": "intDiv(toUnixTimestamp64Nano(Timestamp), 1000) % 1000",
    "below_second": "intDiv(toUnixTimestamp64Nano(Timestamp), 1000000) % 1000",
    "second": "toSecond(Timestamp)",
    "instant_is_even": "toUnixTimestamp64Nano(Timestamp) % 2",
    "trace_first": "reinterpretAsUInt8(unhex(substring(TraceId, 1, 2)))",
    "trace_last": "reinterpretAsUInt8(unhex(substring(TraceId, 31, 2)))",
    "trace_digits": "length(extractAll(TraceId, '[0-9]'))",
    "trace_distinct": "length(arrayDistinct(splitByString('', TraceId)))",
    "span_first": "reinterpretAsUInt8(unhex(substring(SpanId, 1, 2)))",
    "span_last": "reinterpretAsUInt8(unhex(substring(SpanId, 15, 2)))",
    "span_digits": "length(extractAll(SpanId, '[0-9]'))",
    "identifier_lengths": "length(TraceId) + length(SpanId)",
    "resource_keys": "length(ResourceAttributes)",
    "resource_key_set": "cityHash64(arraySort(mapKeys(ResourceAttributes))) % 997",
    "offset_parity": "_part_offset % 2",
    "offset_in_sixteen": "_part_offset % 16",
    "spacing": "spacing",
    "spans_in_trace": "spans",
    "logs_in_trace": "logs",
}
SPANS = COMMON | {
    "keys": "length(SpanAttributes)",
    "key_set": "cityHash64(arraySort(mapKeys(SpanAttributes))) % 997",
    "key_order": "cityHash64(mapKeys(SpanAttributes)) % 997",
    "has_parent": "ParentSpanId != ''",
    "duration_below_microsecond": "Duration % 1000",
    "duration_below_millisecond": "intDiv(Duration, 1000) % 1000",
    "has_scope": "length(ScopeName) + length(ScopeVersion)",
    "events": "length(`Events.Name`) + length(`Links.TraceId`) + length(TraceState)",
}
LOGS = COMMON | {
    "keys": "length(LogAttributes)",
    "key_set": "cityHash64(arraySort(mapKeys(LogAttributes))) % 997",
    "key_order": "cityHash64(mapKeys(LogAttributes)) % 997",
    "flags": "TraceFlags",
    "has_scope": "length(ScopeName) + length(ScopeVersion) + length(EventName)",
}


def structure_query(
    table: str, *, cell: str, planted: str, features: Mapping[str, str], status: str, one_in: int = 1
) -> str:
    """Return the query of all rows that may be compared: cell, whether planted, and the features.

    Args:
        table: the table.
        cell: what rows must have in common to be compared, as an expression.
        planted: whether a row is planted, as an expression.
        features: the structural columns.
        status: which rows are compared at all.
        one_in: of the ordinary rows only so many are taken.
    """
    # Neighbours in time within the group and the redraw: where a row lies between them, whatever the density.
    window = f"OVER (PARTITION BY {cell}, _part ORDER BY Timestamp ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)"
    instant = "toUnixTimestamp64Nano(Timestamp)"
    listed = ", ".join(f"toFloat64({sql}) AS {name}" for name, sql in features.items())
    return (
        f"SELECT {cell} AS cell, {planted} AS planted, {listed} FROM (SELECT *, _part_offset,"
        f" ({instant} - min({instant}) {window}) / greatest(max({instant}) {window} - min({instant}) {window}, 1)"
        f" AS spacing, count() {window} AS neighbours FROM {table} WHERE {status}) AS rows"
        " LEFT JOIN (SELECT TraceId, count() AS spans FROM otel_traces GROUP BY TraceId) AS t USING TraceId"
        " LEFT JOIN (SELECT TraceId, count() AS logs FROM otel_logs GROUP BY TraceId) AS l USING TraceId"
        f" WHERE neighbours = 3 AND cell IN (SELECT {cell} FROM {table} WHERE {status} AND {planted})"
        f" AND (planted OR cityHash64(TraceId) % {one_in} = 0) ORDER BY TraceId, SpanId"
    )


@dataclass(frozen=True)
class Compared:
    """Planted rows of a table, and the rows that they are compared with; see `structure_query`."""

    table: str
    cell: str
    planted: str
    features: Mapping[str, str]
    status: str
    one_in: int = 1


def keep_streams(recipe: Recipe, streams: Collection[str]) -> Recipe:
    """Leave out the streams that have no row in any planted row's (service, name, status): they only cost time."""
    kept = {name: group for name, group in recipe.groups.items() if group.of in streams}
    return recipe.model_copy(update={"streams": {name: recipe.streams[name] for name in streams}, "groups": kept})


async def redraw(session: HttpSession, recipe: Recipe, database: str, *, times: int, volume: str) -> None:
    """Load a recipe's rows again and again into one database, each time by another seed."""
    for seed in range(times):
        plan = compile_plan(recipe, seed=seed, anchor=ANCHOR, volume=Decimal(volume))
        if seed == 0:
            await datasets.create_tables(session, plan, database)
        await datasets.load_rows(session, plan, database)


async def measure_areas(session: HttpSession, database: str, *compared: Compared) -> list[tuple[int, float]]:
    """Return, per cell, the planted rows and how well they are told apart."""
    areas: list[tuple[int, float]] = []
    for one in compared:
        query = structure_query(
            one.table, cell=one.cell, planted=one.planted, features=one.features, status=one.status, one_in=one.one_in
        )
        areas += areas_by_cell(await session.fetch(query, {"database": database}))
    return areas


def areas_by_cell(rows: Sequence[tuple[object, ...]]) -> list[tuple[int, float]]:
    """Return, per cell of what `structure_query` asked for, the planted rows and how well they are told apart."""
    cells = np.array([str(row[0]) for row in rows])
    planted = np.array([int(str(row[1])) for row in rows])
    columns = np.array([[float(str(value)) for value in row[2:]] for row in rows])
    found = []
    for cell in np.unique(cells):
        here = cells == cell
        found.append((int(planted[here].sum()), area(columns[here], planted[here])))
    return found


def pooled(areas: Sequence[tuple[int, float]]) -> float:
    """Return the mean area, weighted by planted rows."""
    return sum(weight * one for weight, one in areas) / sum(weight for weight, _ in areas)


def area(columns: np.ndarray, planted: np.ndarray) -> float:
    """Return the cross-validated area under the curve of a small classifier: 0.5 is chance."""
    model = HistGradientBoostingClassifier(max_iter=60, max_depth=3, random_state=0)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    # Its threads wait for each other by spinning: beside other tests that takes ten times as long as one thread does.
    with threadpool_limits(1):
        scores = cross_val_predict(model, columns, planted, cv=folds, method="predict_proba")[:, 1]
    return float(roc_auc_score(planted, scores))
