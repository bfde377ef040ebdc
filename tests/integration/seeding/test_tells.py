"""Nothing but content tells a planted row from an ordinary one.

Redraws of the pools are gathered until there are over a thousand planted rows. Within each (service, name, status) a
small classifier is then trained on structural columns only, and must do no better than chance.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from proctor.adapters.clickhouse import datasets
from proctor.adapters.clickhouse.session import HttpSession
from proctor.core.scenarios.recipe import Recipe, load_recipe
from proctor.core.seeding.plan import compile_plan
from support.seeding import ANCHOR, ROOT, SHIPPED
from support.tells import HIGHEST_AUC, LOGS, SPANS, area, areas_by_cell, pooled, structure_query

pytestmark = [pytest.mark.engine]

REDRAWS = 34
DATABASE = "ds_00000000000000ff_1"
PLANTED = "(SELECT TraceId FROM otel_traces WHERE SpanAttributes['error.type'] = 'DBTimeout')"


def _checkouts_alone(recipe: Recipe) -> Recipe:
    """Leave out the streams that have no row in any planted row's (service, name, status): they only cost time."""
    kept = {name: group for name, group in recipe.groups.items() if group.of == "checkout"}
    return recipe.model_copy(update={"streams": {"checkout": recipe.streams["checkout"]}, "groups": kept})


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
    areas = []
    for table, cell, features, status in (
        ("otel_traces", "concat(ServiceName, SpanName)", SPANS, "StatusCode = 'Error'"),
        ("otel_logs", "ServiceName", LOGS, "SeverityText = 'ERROR'"),
    ):
        query = structure_query(table, cell=cell, planted=f"TraceId IN {PLANTED}", features=features, status=status)
        areas += areas_by_cell(await session.fetch(query, {"database": DATABASE}))
    assert sum(planted for planted, _ in areas) >= 1000
    assert len(areas) == 4
    assert pooled(areas) <= HIGHEST_AUC, areas


QUIET_REDRAWS = 5
QUIET_DATABASE = "ds_00000000000000fe_1"


@pytest.mark.drill
@pytest.mark.asyncio(loop_scope="module")
async def test_structure_does_not_tell_what_is_new_in_a_quiet_hour(session: HttpSession) -> None:
    """Scenarios, no tells: a new kind of log line, and the errors of one minute, among their like."""
    recipe = load_recipe(ROOT / "scenarios" / "service-health-check")
    for seed in range(QUIET_REDRAWS):
        plan = compile_plan(recipe, seed=seed, anchor=ANCHOR, volume=Decimal("0.01"))
        if seed == 0:
            await datasets.create_tables(session, plan, QUIET_DATABASE)
        await datasets.load_rows(session, plan, QUIET_DATABASE)
    minute = (
        "StatusMessage = 'fare engine: connect timed out' AND dateDiff('second', Timestamp,"
        " toDateTime64('2026-11-30 12:00:00', 9, 'UTC')) BETWEEN 3361 AND 3419"
    )
    # A request writes its second line before it is done, and its access line after.
    second_lines = "SeverityText = 'INFO' AND NOT startsWith(Body, 'access log ')"
    areas = []
    for table, planted, features, status, one_in in (
        ("otel_traces", minute, SPANS, "StatusCode = 'Error'", 1),
        ("otel_logs", "startsWith(Body, 'shadow price')", LOGS, second_lines, 20),
    ):
        query = structure_query(
            table, cell="ServiceName", planted=planted, features=features, status=status, one_in=one_in
        )
        areas += areas_by_cell(await session.fetch(query, {"database": QUIET_DATABASE}))
    assert sum(planted for planted, _ in areas) >= 1000
    assert pooled(areas) <= HIGHEST_AUC, areas


def test_the_classifier_finds_a_tell() -> None:
    """Positive control: rows on whole milliseconds are told apart at once."""
    chance = np.random.default_rng(0)
    planted = (np.arange(1600) % 5 == 0).astype(int)
    digits = chance.integers(0, 1000, 1600) * (1 - planted)
    columns = np.column_stack([digits, chance.integers(0, 256, (1600, 6))]).astype(float)
    assert area(columns, planted) > 0.95
    columns[:, 0] = chance.integers(0, 1000, 1600)
    assert area(columns, planted) < 0.56
