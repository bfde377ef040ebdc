"""Nothing but content tells the rows that a half-done rollout leaves behind from ordinary ones."""

from __future__ import annotations

from decimal import Decimal

import pytest

from proctor.adapters.clickhouse import datasets
from proctor.adapters.clickhouse.session import HttpSession
from proctor.core.scenarios.recipe import Recipe, load_recipe
from proctor.core.seeding.plan import compile_plan
from support.playing import SCENARIOS
from support.seeding import ANCHOR
from support.tells import HIGHEST_AUC, LOGS, SPANS, areas_by_cell, pooled, structure_query

pytestmark = [pytest.mark.engine, pytest.mark.drill]

REDRAWS = 3
DATABASE = "ds_00000000000000fc_1"
STREAMS = ("purchases", "caught_log")
# Failures since the first pod changed, with vouchers that its build can't read.
FAILED = (
    "(SELECT TraceId FROM otel_traces WHERE SpanName = 'POST /purchase' AND StatusCode = 'Error'"
    " AND SpanAttributes['voucher.code'] IN ('FREEPOST', 'TAKE5', 'TREAT10')"
    " AND SpanAttributes['error.type'] = 'InternalError'"
    " AND Timestamp > toDateTime64('2026-11-30 11:15:00', 9, 'UTC'))"
)


def _with_planted_rows(recipe: Recipe) -> Recipe:
    """Leave out the streams that have no row in any planted row's (service, name, status): they only cost time."""
    kept = {name: group for name, group in recipe.groups.items() if group.of in STREAMS}
    return recipe.model_copy(update={"streams": {name: recipe.streams[name] for name in STREAMS}, "groups": kept})


@pytest.mark.asyncio(loop_scope="module")
async def test_structure_does_not_tell_what_a_new_build_breaks(session: HttpSession) -> None:
    """Scenarios, no tells: failed purchases, their lines, and warnings, among their like."""
    recipe = _with_planted_rows(load_recipe(SCENARIOS / "deploy-regression"))
    for seed in range(REDRAWS):
        plan = compile_plan(recipe, seed=seed, anchor=ANCHOR, volume=Decimal("0.1"))
        if seed == 0:
            await datasets.create_tables(session, plan, DATABASE)
        await datasets.load_rows(session, plan, DATABASE)
    areas = []
    for table, cell, planted, features, status in (
        ("otel_traces", "concat(ServiceName, SpanName)", f"TraceId IN {FAILED}", SPANS, "StatusCode = 'Error'"),
        ("otel_logs", "ServiceName", f"TraceId IN {FAILED}", LOGS, "SeverityText = 'ERROR'"),
        # A sixth of them is enough: warnings are many.
        (
            "otel_logs",
            "ServiceName",
            "startsWith(Body, 'Deprecation')",
            LOGS,
            "SeverityText = 'WARN' AND cityHash64(Timestamp) % 6 = 0",
        ),
    ):
        query = structure_query(table, cell=cell, planted=planted, features=features, status=status)
        areas += areas_by_cell(await session.fetch(query, {"database": DATABASE}))
    assert sum(planted for planted, _ in areas) >= 1000
    assert len(areas) == 3
    assert pooled(areas) <= HIGHEST_AUC, areas
