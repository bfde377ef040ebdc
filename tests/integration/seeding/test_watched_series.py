"""What alert rules watch, fetched from rows as grading fetches it."""

from __future__ import annotations

from collections import Counter

import pytest

from proctor.adapters.clickhouse import datasets
from proctor.adapters.clickhouse.artifact_rows import DatasetRows
from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.session import HttpSession
from proctor.core.grading.alert_rules import Selector, Series, read_series
from proctor.core.grading.rows import Question, Rows
from support.seeding import load_everything, make_plan

pytestmark = [pytest.mark.engine]

DATABASE = "ds_00000000000000fa_1"
HOSTILE = ("') UNION ALL SELECT 1, 1 --", "\\", "\\'", "' OR '1' = '1", "{service:String}", "ü;é", "`", "/* */")


@pytest.mark.asyncio(loop_scope="module")
async def test_series_are_those_of_the_rows(session: HttpSession, endpoint: Endpoint) -> None:
    """Part 2: each minute's points, sum and extremes, of gauges and sums alike; hostile words are but words."""
    plan = make_plan(load_everything(), volume="0.01")
    await datasets.create_tables(session, plan, DATABASE)
    await datasets.load_rows(session, plan, DATABASE)
    points = [
        row
        for kind in ("gauge", "sum")
        for row in await session.fetch(
            "SELECT MetricName, ServiceName, intDiv(toUnixTimestamp(TimeUnix), 60), Value"
            f" FROM otel_metrics_{kind} ORDER BY ALL",
            {"database": DATABASE},
        )
    ]
    metric, service = points[0][:2]
    wanted = Counter(int(str(row[2])) for row in points if row[:2] == (metric, service))
    most = max(float(str(row[3])) for row in points if row[:2] == (metric, service))
    plain = Selector(str(service), str(metric), ())
    hostile = [
        selector
        for word in HOSTILE
        for selector in (
            Selector(word, str(metric), ()),
            Selector(None, word, ()),
            Selector(None, str(metric), ((word, "x"),)),
            Selector(None, str(metric), (("x", word),)),
        )
    ]
    rows = DatasetRows(HttpSession(endpoint.in_database(DATABASE)))
    fetched = await rows.fetch(Question(one.query) for one in (plain, *hostile))
    series = [_read(fetched[Question(one.query)]) for one in (plain, *hostile)]
    assert series[0] is not None
    assert sum(series[0].points) == wanted.total()
    assert (series[0].first, max(series[0].most)) == (min(wanted), most)
    assert series[1:] == [None] * len(hostile)


def _read(fetched: object) -> Series | None:
    assert isinstance(fetched, Rows), fetched
    return read_series(str(fetched.rows[0][0]))
