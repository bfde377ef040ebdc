"""Nothing but content tells a planted row from an ordinary one.

Redraws of the pools are gathered until there are over a thousand planted rows. Within each (service, name, status) a
small classifier is then trained on structural columns only, and must do no better than chance.
"""

from __future__ import annotations

import numpy as np
import pytest

from proctor.adapters.clickhouse.session import HttpSession
from proctor.core.scenarios.recipe import load_recipe
from support.seeding import ROOT, SHIPPED
from support.tells import HIGHEST_AUC, LOGS, SPANS, Compared, area, keep_streams, measure_areas, pooled, redraw

pytestmark = [pytest.mark.engine]

REDRAWS = 34
DATABASE = "ds_00000000000000ff_1"
PLANTED = "(SELECT TraceId FROM otel_traces WHERE SpanAttributes['error.type'] = 'DBTimeout')"


@pytest.mark.drill
@pytest.mark.asyncio(loop_scope="module")
async def test_structure_does_not_tell_planted_rows(session: HttpSession) -> None:
    """Scenarios, no tells: cross-validated AUC at most 0.53 over more than 1,000 planted rows."""
    recipe = keep_streams(load_recipe(SHIPPED), ("checkout",))
    await redraw(session, recipe, DATABASE, times=REDRAWS, volume="0.01")
    planted = f"TraceId IN {PLANTED}"
    areas = await measure_areas(
        session,
        DATABASE,
        Compared("otel_traces", "concat(ServiceName, SpanName)", planted, SPANS, "StatusCode = 'Error'"),
        Compared("otel_logs", "ServiceName", planted, LOGS, "SeverityText = 'ERROR'"),
    )
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
    await redraw(session, recipe, QUIET_DATABASE, times=QUIET_REDRAWS, volume="0.01")
    minute = (
        "StatusMessage = 'fare engine: connect timed out' AND dateDiff('second', Timestamp,"
        " toDateTime64('2026-11-30 12:00:00', 9, 'UTC')) BETWEEN 3361 AND 3419"
    )
    # A request writes its second line before it is done, and its access line after.
    second_lines = "SeverityText = 'INFO' AND NOT startsWith(Body, 'access log ')"
    areas = await measure_areas(
        session,
        QUIET_DATABASE,
        Compared("otel_traces", "ServiceName", minute, SPANS, "StatusCode = 'Error'"),
        Compared("otel_logs", "ServiceName", "startsWith(Body, 'shadow price')", LOGS, second_lines, one_in=20),
    )
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
