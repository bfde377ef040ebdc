"""What SQL in an answer can do to the dataset and to its own grade: read what agents may read, within bounds."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from proctor.adapters.clickhouse.artifact_rows import DatasetRows
from proctor.adapters.clickhouse.session import HttpSession
from proctor.core.grading.rows import Extent, Fetched, Question, Refused, Rows
from proctor.core.seeding.schema import create_table
from proctor.local.engine import Access, Engine
from support.engines import SMALL

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="module")]

FILL = """
    INSERT INTO ds_1.otel_traces (Timestamp, ServiceName, SpanName)
    SELECT toDateTime64('2026-11-30 11:00:00', 9, 'UTC') + number, if(number % 2, 'web', 'orders'), 'call'
    FROM numbers(1000)
"""
ENDLESS = "FROM otel_traces AS one, otel_traces AS two, otel_traces AS three, otel_traces AS four"
COUNT = "SELECT count() FROM otel_traces"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def rows(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DatasetRows]:
    root = tmp_path_factory.mktemp("artifact")
    async with Engine.start(root / "data", access=Access("ds_1"), log=root / "engine.log", limits=SMALL) as engine:
        own = HttpSession(engine.endpoint)
        for statement in ("CREATE DATABASE ds_1", create_table("ds_1", "otel_traces"), FILL):
            await own.run(statement)
        assert engine.agent_endpoint
        yield DatasetRows(HttpSession(engine.agent_endpoint), pause=0.01, seconds=3)


async def ask(rows: DatasetRows, sql: str, extent: Extent = Extent.WHOLE, **given: str) -> Fetched:
    question = Question(sql, tuple(given.items()), extent)
    return (await rows.fetch([question]))[question]


@pytest.mark.parametrize(
    ("sql", "first"),
    [
        (f"{COUNT};", "1000"),
        (f"{COUNT} -- a comment", "1000"),
        ("WITH shop AS (SELECT * FROM otel_traces) SELECT count() FROM shop UNION ALL SELECT 7", "1000"),
        ("SELECT count() FROM ds_1.otel_traces WHERE ServiceName = {service:String}", "500"),
    ],
)
async def test_one_select_over_the_dataset_is_run(rows: DatasetRows, sql: str, first: str) -> None:
    """P29: what an agent may ask is asked, with a filter's value as a parameter."""
    outcome = await ask(rows, sql, service="web")
    assert isinstance(outcome, Rows)
    assert first in {row[0] for row in outcome.rows}


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT 'orders', 12", "reads no table"),
        ("SELECT * FROM numbers(3)", "reads no table"),
        ("SELECT * FROM file('/etc/passwd', 'CSV', 'a String')", "reads no table"),
        ("SELECT * FROM otel_traces, file('/etc/passwd', 'CSV', 'a String')", "ACCESS_DENIED"),
        ("SELECT * FROM otel_traces, url('http://127.0.0.1:1/', 'CSV', 'a String')", "ACCESS_DENIED"),
        ("SELECT count() FROM system.users", "ACCESS_DENIED"),
        (f"{COUNT} SETTINGS max_execution_time = 30", "settings of its own"),
        (
            f"{COUNT} WHERE 1 IN (SELECT 1 SETTINGS additional_table_filters = {{'otel_traces': '1'}})",
            "settings of its own",
        ),
        (f"{COUNT} FORMAT TSV", "Syntax error"),
        (f"{COUNT} INTO OUTFILE '/tmp/out'", "Syntax error"),
        (f"{COUNT}) FORMAT TSV --", "Syntax error"),
        (f"{COUNT}) AS one FORMAT TSV -- (", "Syntax error"),
        (f"{COUNT}) SETTINGS max_threads = 1 -- (", "Syntax error"),
        (f"{COUNT}) UNION ALL (SELECT 1 SETTINGS max_threads = 1", "readonly mode"),
        (f"{COUNT}; DROP TABLE otel_traces", "Syntax error"),
        ("DROP TABLE otel_traces", "Syntax error"),
        ("SELECT {service:String} FROM otel_traces", "UNKNOWN_QUERY_PARAMETER"),
        ("SELECT Timestamp FROM otel_traces, (SELECT arrayJoin(range(10)) AS n) AS ten", "TOO_MANY_ROWS_OR_BYTES"),
        ("SELECT " + "(" * 1500 + "1" + ")" * 1500 + " FROM otel_traces", "Maximum parse depth"),
    ],
)
async def test_what_is_at_fault_itself_is_refused(rows: DatasetRows, sql: str, says: str) -> None:
    """P29, grading rule 5: a tile's own fault is a refusal, with ClickHouse's words; never a cell without a grade."""
    outcome = await ask(rows, sql)
    assert isinstance(outcome, Refused)
    assert says in outcome.reason
    assert "127.0.0.1:" not in outcome.reason.replace("127.0.0.1:1/", "")
    assert len(outcome.reason) <= 300


async def test_what_takes_too_long_is_refused(rows: DatasetRows) -> None:
    """P29: over its time, twice, and a tile is at fault; the next one is asked as if nothing had been."""
    slow, quick = (
        Question(
            f"SELECT count() {ENDLESS} WHERE sipHash64(one.TraceId, two.TraceId, three.Timestamp, four.Timestamp) = 1"
        ),
        Question(COUNT),
    )
    fetched = await rows.fetch([slow, quick, slow._replace(extent=Extent.HALF)])
    assert isinstance(fetched[slow], Refused)
    assert fetched[slow._replace(extent=Extent.HALF)] == fetched[slow]
    assert fetched[quick] == Rows((("1000",),))


@pytest.mark.parametrize(
    "sql",
    [
        COUNT,
        "SELECT count() FROM ds_1.otel_traces AS x",
        "WITH c AS (SELECT count() AS n FROM otel_traces) SELECT n FROM c",
    ],
)
async def test_a_query_is_asked_over_half_of_the_rows_and_none(rows: DatasetRows, sql: str) -> None:
    """P29: what is computed follows the rows, however the table is named."""
    half, none = await ask(rows, sql, Extent.HALF), await ask(rows, sql, Extent.NONE)
    assert isinstance(half, Rows)
    assert 400 < int(str(half.rows[0][0])) < 600
    assert none == Rows((("0",),))
