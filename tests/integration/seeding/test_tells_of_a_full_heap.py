"""Nothing but content tells the rows that a full heap leaves behind from ordinary ones."""

from __future__ import annotations

import pytest

from proctor.adapters.clickhouse.session import HttpSession
from proctor.core.scenarios.recipe import load_recipe
from support.playing import SCENARIOS
from support.tells import HIGHEST_AUC, LOGS, SPANS, Compared, keep_streams, measure_areas, pooled, redraw

pytestmark = [pytest.mark.engine, pytest.mark.drill]

REDRAWS = 14
DATABASE = "ds_00000000000000fd_1"
STREAMS = ("widgets", "rankings", "ranking_log", "access_log", "restarts")
PLANTED_LINES = (
    "(startsWith(Body, 'probe /') OR startsWith(Body, 'container ') OR startsWith(Body, 'features not read')"
    " OR match(Body, ' 503 upstream=affinity-api took=9[0-9]{3}ms'))"
)


@pytest.mark.asyncio(loop_scope="module")
async def test_structure_does_not_tell_what_a_full_heap_leaves_behind(session: HttpSession) -> None:
    """Scenarios, no tells: requests without an answer, restarts, timeouts and lines of the edge, among their like."""
    recipe = keep_streams(load_recipe(SCENARIOS / "metric-saturation"), STREAMS)
    await redraw(session, recipe, DATABASE, times=REDRAWS, volume="0.1")
    unanswered = "SpanAttributes['error.type'] = 'DeadlineExceeded'"
    areas = await measure_areas(
        session,
        DATABASE,
        Compared("otel_traces", "concat(ServiceName, SpanName)", unanswered, SPANS, "StatusCode = 'Error'"),
        Compared("otel_logs", "ServiceName", PLANTED_LINES, LOGS, "SeverityText = 'WARN'"),
    )
    assert sum(planted for planted, _ in areas) >= 1000
    assert pooled(areas) <= HIGHEST_AUC, areas
