"""Nothing but content tells planted rows that are a share of the traffic, or of the lines, from ordinary ones."""

from __future__ import annotations

import pytest

from proctor.adapters.clickhouse.session import HttpSession
from proctor.core.scenarios.recipe import Recipe, load_recipe
from proctor.core.scenarios.recipe_draws import Time
from support.playing import SCENARIOS
from support.tells import HIGHEST_AUC, LOGS, SPANS, Compared, keep_streams, measure_areas, pooled, redraw

pytestmark = [pytest.mark.engine, pytest.mark.drill]

SLOW = (
    "TraceId IN (SELECT TraceId FROM otel_traces WHERE SpanAttributes['db.access.path'] = 'sequential'"
    " AND SpanAttributes['db.namespace'] = 'orders_dedicated' AND Duration > 1000000000)"
)
STRANGE = "TraceId IN (SELECT TraceId FROM otel_traces WHERE SpanAttributes['error.type'] = 'LayoutMismatch')"
CHEAP = (
    "match(Body, '^(?:token cache hit|mrr snapshot|TransientError caught|heartbeat from|GET /_lb/ready|console.debug"
    "|query cache miss)')"
)


def late_rows(recipe: Recipe, stream: str) -> Recipe:
    """Keep of one stream what it has in the last ten minutes of its hour, in which all planted rows are."""
    whole = recipe.streams[stream]
    assert whole.rows is not None
    late = Time.model_validate({"time": [{"from": "-10m"}]})
    kept = whole.model_copy(update={"rows": whole.rows // 6, "draws": {**whole.draws, "at": late}})
    return keep_streams(recipe.model_copy(update={"streams": {stream: kept}}), (stream,))


@pytest.mark.asyncio(loop_scope="module")
async def test_structure_does_not_tell_requests_that_wait_for_a_scan(session: HttpSession) -> None:
    """Scenarios, no tells: slow requests and their queries, among requests of the same route."""
    database = "ds_00000000000000fc_1"
    recipe = late_rows(load_recipe(SCENARIOS / "latency-spike"), "api")
    await redraw(session, recipe, database, times=3, volume="0.06")
    same_route = (
        "TraceId IN (SELECT TraceId FROM otel_traces WHERE SpanName = 'GET /v2/orders/search')"
        " AND SpanName IN ('GET /v2/orders/search', 'SELECT orders') AND StatusCode != 'Error'"
    )
    compared = Compared("otel_traces", "concat(ServiceName, SpanName)", SLOW, SPANS, same_route, one_in=4)
    areas = await measure_areas(session, database, compared)
    assert sum(planted for planted, _ in areas) >= 1000
    assert len(areas) == 2
    assert pooled(areas) <= HIGHEST_AUC, areas


@pytest.mark.asyncio(loop_scope="module")
async def test_structure_does_not_tell_failures_of_one_part_of_the_traffic(session: HttpSession) -> None:
    """Scenarios, no tells: failed calls that take a tier and a cache miss, and their log lines, among failed calls."""
    database = "ds_00000000000000fb_1"
    recipe = late_rows(load_recipe(SCENARIOS / "segmented-regression"), "calls")
    await redraw(session, recipe, database, times=5, volume="0.08")
    areas = await measure_areas(
        session,
        database,
        Compared("otel_traces", "ServiceName", STRANGE, SPANS, "StatusCode = 'Error'"),
        Compared("otel_logs", "ServiceName", STRANGE, LOGS, "SeverityText = 'ERROR'"),
    )
    assert sum(planted for planted, _ in areas) >= 1000
    assert len(areas) == 2
    assert pooled(areas) <= HIGHEST_AUC, areas


@pytest.mark.asyncio(loop_scope="module")
async def test_structure_does_not_tell_lines_that_may_go(session: HttpSession) -> None:
    """Scenarios, no tells: the seven kinds of line, each among those of the same service and severity."""
    database = "ds_00000000000000fa_1"
    recipe = load_recipe(SCENARIOS / "noisy-signals")
    await redraw(session, recipe, database, times=2, volume="0.0008")
    compared = Compared("otel_logs", "concat(ServiceName, SeverityText)", CHEAP, LOGS, "1")
    areas = await measure_areas(session, database, compared)
    assert sum(planted for planted, _ in areas) >= 1000
    assert len(areas) == 10
    assert pooled(areas) <= HIGHEST_AUC, areas
