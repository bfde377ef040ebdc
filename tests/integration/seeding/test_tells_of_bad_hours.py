"""Nothing but content tells the rows that hours in which customers are hurt leave behind from ordinary ones."""

from __future__ import annotations

import pytest

from proctor.adapters.clickhouse.session import HttpSession
from proctor.core.scenarios.recipe import load_recipe
from proctor.core.scenarios.recipe_draws import Time
from support.playing import SCENARIOS
from support.tells import HIGHEST_AUC, LOGS, SPANS, Compared, keep_streams, measure_areas, pooled, redraw

pytestmark = [pytest.mark.engine, pytest.mark.drill]

REDRAWS = 10
DATABASE = "ds_00000000000000fb_1"
STREAMS = ("requests", "tickets")
ANCHOR = "toDateTime64('2026-11-30 12:00:00', 9, 'UTC')"
# When labels failed, and when quotes did.
FAILED = (
    f"((SpanName = 'POST /labels' AND dateDiff('minute', Timestamp, {ANCHOR}) BETWEEN 16036 AND 16079)"
    f" OR (SpanName = 'POST /quotes' AND dateDiff('minute', Timestamp, {ANCHOR}) BETWEEN 5036 AND 5069))"
)
# When customers wrote in by the dozen, and of what.
WRITTEN = " OR ".join(
    f"(LogAttributes['ticket.topic'] = '{topic}'"
    f" AND dateDiff('minute', Timestamp, {ANCHOR}) BETWEEN {until} AND {since})"
    for topic, since, until in (
        ("labels", 16077, 16020),
        ("quotes", 5067, 5025),
        ("speed", 11415, 11355),
        ("printing", 8085, 8000),
        ("tracking", 2634, 2580),
    )
)


@pytest.mark.asyncio(loop_scope="module")
async def test_structure_does_not_tell_what_bad_hours_leave_behind(session: HttpSession) -> None:
    """Scenarios, no tells: failed requests of two of these hours, and the tickets of all of them, among their like."""
    recipe = keep_streams(load_recipe(SCENARIOS / "alert-quality"), STREAMS)
    # Two weeks of requests hold few of those hours; what lies further away is like what lies around them.
    around = Time.model_validate({"time": [{"from": "-271h", "until": "-264h"}, {"from": "-87h", "until": "-81h"}]})
    draws = recipe.streams["requests"].draws | {"at": around}
    requests = recipe.streams["requests"].model_copy(update={"rows": 30_000, "draws": draws})
    recipe = recipe.model_copy(update={"streams": recipe.streams | {"requests": requests}})
    await redraw(session, recipe, DATABASE, times=REDRAWS, volume="1")
    areas = await measure_areas(
        session,
        DATABASE,
        Compared("otel_traces", "concat(ServiceName, SpanName)", FAILED, SPANS, "StatusCode = 'Error'"),
        Compared("otel_logs", "ServiceName", f"({WRITTEN})", LOGS, "LogAttributes['ticket.topic'] != ''"),
    )
    assert sum(planted for planted, _ in areas) >= 1000
    assert len(areas) == 3
    assert pooled(areas) <= HIGHEST_AUC, areas
