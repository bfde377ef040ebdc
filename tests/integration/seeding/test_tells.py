"""Nothing but content tells a planted row from an ordinary one.

Redraws of the pools are gathered until there are over a thousand planted rows. Within each (service, name, status) a
small classifier is then trained on structural columns only, and must do no better than chance.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from proctor.adapters.clickhouse import datasets
from proctor.adapters.clickhouse.session import HttpSession
from proctor.core.scenarios.recipe import Recipe, load_recipe
from proctor.core.seeding.plan import compile_plan
from support.seeding import ANCHOR, SHIPPED

pytestmark = [pytest.mark.engine]

REDRAWS = 34
HIGHEST_AUC = 0.53
DATABASE = "ds_00000000000000ff_1"
PLANTED = "(SELECT TraceId FROM otel_traces WHERE SpanAttributes['error.type'] = 'DBTimeout')"

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


def _checkouts_alone(recipe: Recipe) -> Recipe:
    """Leave out the streams that have no row in any planted row's (service, name, status): they only cost time."""
    kept = {name: group for name, group in recipe.groups.items() if group.of == "checkout"}
    return recipe.model_copy(update={"streams": {"checkout": recipe.streams["checkout"]}, "groups": kept})


def _query(table: str, group: str, features: dict[str, str], status: str) -> str:
    # Neighbours in time within the group and the redraw: where a row lies between them, whatever the density.
    window = f"OVER (PARTITION BY {group}, _part ORDER BY Timestamp ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)"
    instant = "toUnixTimestamp64Nano(Timestamp)"
    listed = ", ".join(f"toFloat64({sql}) AS {name}" for name, sql in features.items())
    return (
        f"SELECT {group} AS cell, TraceId IN {PLANTED} AS planted, {listed} FROM (SELECT *, _part_offset,"
        f" ({instant} - min({instant}) {window}) / greatest(max({instant}) {window} - min({instant}) {window}, 1)"
        f" AS spacing, count() {window} AS neighbours FROM {table} WHERE {status}) AS rows"
        " LEFT JOIN (SELECT TraceId, count() AS spans FROM otel_traces GROUP BY TraceId) AS t USING TraceId"
        " LEFT JOIN (SELECT TraceId, count() AS logs FROM otel_logs GROUP BY TraceId) AS l USING TraceId"
        f" WHERE neighbours = 3 AND cell IN (SELECT {group} FROM {table} WHERE {status} AND TraceId IN {PLANTED})"
        " ORDER BY TraceId, SpanId"
    )


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return _checkouts_alone(load_recipe(SHIPPED))


@pytest.mark.drill
@pytest.mark.asyncio(loop_scope="module")
async def test_structure_does_not_tell_planted_rows(session: HttpSession, recipe: Recipe) -> None:
    """Scenarios, no tells: cross-validated AUC at most 0.53 over more than 1,000 planted rows."""
    for seed in range(REDRAWS):
        plan = compile_plan(recipe, seed=seed, anchor=ANCHOR, volume=Decimal("0.01"))
        if seed == 0:
            await datasets.create_tables(session, plan, DATABASE)
        await datasets.load_rows(session, plan, DATABASE)
    areas, planted_rows = [], 0
    for table, group, features, status in (
        ("otel_traces", "concat(ServiceName, SpanName)", SPANS, "StatusCode = 'Error'"),
        ("otel_logs", "ServiceName", LOGS, "SeverityText = 'ERROR'"),
    ):
        rows = await session.fetch(_query(table, group, features, status), {"database": DATABASE})
        cells = np.array([str(row[0]) for row in rows])
        planted = np.array([int(str(row[1])) for row in rows])
        columns = np.array([[float(str(value)) for value in row[2:]] for row in rows])
        for cell in np.unique(cells):
            here = cells == cell
            areas.append((planted[here].sum(), _area(columns[here], planted[here])))
        planted_rows += planted.sum()
    assert planted_rows >= 1000
    assert len(areas) == 4
    pooled = sum(weight * area for weight, area in areas) / sum(weight for weight, _ in areas)
    assert pooled <= HIGHEST_AUC, areas


def _area(columns: np.ndarray, planted: np.ndarray) -> float:
    model = HistGradientBoostingClassifier(max_iter=60, max_depth=3, random_state=0)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    scores = cross_val_predict(model, columns, planted, cv=folds, method="predict_proba")[:, 1]
    return float(roc_auc_score(planted, scores))


def test_the_classifier_finds_a_tell() -> None:
    """Positive control: rows on whole milliseconds are told apart at once."""
    chance = np.random.default_rng(0)
    planted = (np.arange(1600) % 5 == 0).astype(int)
    digits = chance.integers(0, 1000, 1600) * (1 - planted)
    columns = np.column_stack([digits, chance.integers(0, 256, (1600, 6))]).astype(float)
    assert _area(columns, planted) > 0.95
    columns[:, 0] = chance.integers(0, 1000, 1600)
    assert _area(columns, planted) < 0.56
