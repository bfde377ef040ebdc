"""Nothing but content tells the rows that a half-done rollout leaves behind from ordinary ones."""

from __future__ import annotations

import pytest

from proctor.adapters.clickhouse.session import HttpSession
from proctor.core.scenarios.recipe import load_recipe
from support.playing import SCENARIOS
from support.tells import HIGHEST_AUC, LOGS, SPANS, Compared, keep_streams, measure_areas, pooled, redraw

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


@pytest.mark.asyncio(loop_scope="module")
async def test_structure_does_not_tell_what_a_new_build_breaks(session: HttpSession) -> None:
    """Scenarios, no tells: failed purchases, their lines, and warnings, among their like."""
    recipe = keep_streams(load_recipe(SCENARIOS / "deploy-regression"), STREAMS)
    await redraw(session, recipe, DATABASE, times=REDRAWS, volume="0.1")
    planted = f"TraceId IN {FAILED}"
    # A sixth of them is enough: warnings are many.
    sixth = "SeverityText = 'WARN' AND cityHash64(Timestamp) % 6 = 0"
    areas = await measure_areas(
        session,
        DATABASE,
        Compared("otel_traces", "concat(ServiceName, SpanName)", planted, SPANS, "StatusCode = 'Error'"),
        Compared("otel_logs", "ServiceName", planted, LOGS, "SeverityText = 'ERROR'"),
        Compared("otel_logs", "ServiceName", "startsWith(Body, 'Deprecation')", LOGS, sixth),
    )
    assert sum(planted for planted, _ in areas) >= 1000
    assert len(areas) == 3
    assert pooled(areas) <= HIGHEST_AUC, areas
