"""The queries that the documentation shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proctor.adapters.clickhouse.client import open_client
from proctor.adapters.clickhouse.results import RecordBatch, ResultsStore
from proctor.adapters.clickhouse.results_rows import ATTEMPTS, BLOBS, EVENTS, GRADES, RUNS
from proctor.core.trajectory.events import Event, EventKind, Status
from proctor.local.engine import Engine
from support.results import make_attempt, make_batch

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="module")]

PAGE = (Path(__file__).parents[3] / "docs" / "results.md").read_text()


async def test_the_queries_shown_run(engine: Engine, store: ResultsStore) -> None:
    """Style, habit 8: documentation is tested."""
    await store.write(make_batch(bodies=(b"body",)))
    await store.write(RecordBatch(attempts=(make_attempt(),)))
    statements = [
        statement.strip()
        for block in re.findall(r"^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
        for statement in block.replace("proctor.", f"{store._database}.").replace("'…'", "'run-1'").split(";")
        if statement.strip()
    ]
    assert len(statements) == 3
    async with open_client(engine.endpoint) as client:
        answers = [await client.rows(sql) for sql in statements if sql.startswith("SELECT")]
        for sql in statements:
            if not sql.startswith("SELECT"):
                await client.execute(sql)
    assert [len(rows) for rows in answers] == [1, 1]


async def test_every_table_column_and_word_is_described(store: ResultsStore) -> None:
    """Style, habit 8: what the schema has, the page names."""
    assert store
    for table in (EVENTS, ATTEMPTS, BLOBS, GRADES, RUNS):
        assert f"`{table.name}`" in PAGE
    for name in (*Event.__dataclass_fields__, *EventKind, *Status):
        assert f"`{name}`" in PAGE
