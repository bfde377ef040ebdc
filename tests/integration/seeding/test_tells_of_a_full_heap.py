"""Nothing but content tells the rows that a full heap leaves behind from ordinary ones."""

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

REDRAWS = 14
DATABASE = "ds_00000000000000fd_1"
STREAMS = ("widgets", "rankings", "ranking_log", "access_log", "restarts")
PLANTED_LINES = (
    "(startsWith(Body, 'probe /') OR startsWith(Body, 'container ') OR startsWith(Body, 'features not read')"
    " OR match(Body, ' 503 upstream=affinity-api took=9[0-9]{3}ms'))"
)


def _with_planted_rows(recipe: Recipe) -> Recipe:
    """Leave out the streams that have no row in any planted row's (service, name, status): they only cost time."""
    kept = {name: group for name, group in recipe.groups.items() if group.of in STREAMS}
    return recipe.model_copy(update={"streams": {name: recipe.streams[name] for name in STREAMS}, "groups": kept})


@pytest.mark.asyncio(loop_scope="module")
async def test_structure_does_not_tell_what_a_full_heap_leaves_behind(session: HttpSession) -> None:
    """Scenarios, no tells: requests without an answer, restarts, timeouts and lines of the edge, among their like."""
    recipe = _with_planted_rows(load_recipe(SCENARIOS / "metric-saturation"))
    for seed in range(REDRAWS):
        plan = compile_plan(recipe, seed=seed, anchor=ANCHOR, volume=Decimal("0.1"))
        if seed == 0:
            await datasets.create_tables(session, plan, DATABASE)
        await datasets.load_rows(session, plan, DATABASE)
    areas = []
    for table, cell, planted, features, status in (
        (
            "otel_traces",
            "concat(ServiceName, SpanName)",
            "SpanAttributes['error.type'] = 'DeadlineExceeded'",
            SPANS,
            "StatusCode = 'Error'",
        ),
        ("otel_logs", "ServiceName", PLANTED_LINES, LOGS, "SeverityText = 'WARN'"),
    ):
        query = structure_query(table, cell=cell, planted=planted, features=features, status=status)
        areas += areas_by_cell(await session.fetch(query, {"database": DATABASE}))
    assert sum(planted for planted, _ in areas) >= 1000
    assert pooled(areas) <= HIGHEST_AUC, areas
