"""The results store on a real engine."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proctor.adapters.clickhouse.client import open_client
from proctor.adapters.clickhouse.results import GradeRow, RecordBatch, ResultsStore, RunRow
from proctor.core.trajectory.events import EventKind, Status
from proctor.core.trajectory.outcome import AnswerSource, Limit, Outcome
from proctor.errors import InvalidInput, Retryable, Terminal
from proctor.local.engine import Access, Engine
from support.engines import SMALL
from support.results import ANCHOR, make_attempt, make_blobs, make_event, make_key

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="module")]

HOSTILE = "\ud800 \x00 'quoted' \\ {{7*7}} 日本 \x1b[31m"


async def test_events_come_back_exactly_and_in_order(store: ResultsStore) -> None:
    """M-A8, M-B1: every field of a trajectory is kept as it was, hostile text included."""
    key = make_key()
    events = [
        make_event(1, kind=EventKind.ATTEMPT_OPENED, usd=None),
        make_event(2, name=HOSTILE, error_class="-32602", status=Status.AGENT_ERROR, request_preview=HOSTILE),
        make_event(3, usd=Decimal("12345678901234567.000000000000000001"), input_tokens=2**64 - 1, waited_us=7),
        make_event(10, ts=ANCHOR + timedelta(days=1, microseconds=999999), request_digest="ab" * 32, request_bytes=9),
    ]
    await store.write(RecordBatch(events=tuple((key, event) for event in reversed(events))))
    assert await store.events(key) == tuple(events)
    assert await store.events(make_key(attempt=2)) == ()


async def test_what_was_begun_is_found_ended_or_not(store: ResultsStore) -> None:
    """P4: an attempt that never ended has left its number in the record, and it alone."""
    begun = (make_key(run="begun"), make_key(run="begun", attempt=2), make_key(run="begun", replicate=2))
    events = [(key, make_event(number)) for key in (*begun, make_key(run="another")) for number in (1, 2)]
    await store.write(RecordBatch(events=tuple(events), attempts=(make_attempt(begun[0]),)))
    assert await store.begun("begun") == begun


async def test_attempts_come_back_exactly_and_in_order(store: ResultsStore) -> None:
    """M-A8: how every attempt ended is kept, for each run apart."""
    records = [
        make_attempt(make_key(replicate=1)),
        make_attempt(
            make_key(replicate=2),
            outcome=Outcome.BUDGET_LIMIT,
            limit=Limit.USD,
            usd=None,
            answer_source=AnswerSource.NONE,
            answer_digest="",
        ),
        make_attempt(make_key(replicate=2, attempt=2), reason=HOSTILE),
        make_attempt(make_key(replicate=11)),
    ]
    other = make_attempt(make_key(run="another"))
    await store.write(RecordBatch(attempts=(other, *reversed(records))))
    assert await store.attempts("run-1") == tuple(records)
    assert await store.attempts("another") == (other,)


@given(usd=st.decimals(min_value=0, max_value=10**12, places=18) | st.none(), name=st.text(max_size=50))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_price_and_any_text_come_back_exactly(store: ResultsStore, usd: Decimal | None, name: str) -> None:
    """M-A8: prices lose no digit, text no character."""
    key = make_key(run=secrets.token_hex(8))
    event = make_event(usd=usd, name=name)
    await store.write(RecordBatch(events=((key, event),)))
    assert await store.events(key) == (event,)


async def test_a_batch_written_twice_is_seen_once(store: ResultsStore) -> None:
    """M-D6: a writer that doesn't know whether its batch arrived repeats it, and readers see it once."""
    key = make_key()
    batch = RecordBatch(
        events=tuple((key, make_event(seq)) for seq in range(1, 50)),
        blobs=make_blobs(b"one", b"two"),
        attempts=(make_attempt(key),),
    )
    for _ in range(3):
        await store.write(batch)
    assert len(await store.events(key)) == 49
    assert await store.attempts("run-1") == (make_attempt(key),)


async def test_bodies_are_addressed_by_content(store: ResultsStore) -> None:
    """M-B2: bodies of any bytes come back by digest; a missing one is missing, not empty."""
    bodies = make_blobs(b"", b"\xff\x00\xfe", "日本".encode() * 100_000, *(bytes([n]) * 10 for n in range(200)))
    await store.write(RecordBatch(blobs=bodies))
    assert await store.blobs([*bodies, "0" * 64, ""]) == bodies


async def test_bodies_are_compressed(engine: Engine, store: ResultsStore) -> None:
    """M-B2: conversations repeat themselves; what repeats costs little."""
    await store.write(RecordBatch(blobs=make_blobs(*(b'{"role":"user"}' * 10_000 + bytes([n]) for n in range(20)))))
    async with open_client(engine.endpoint) as client:
        [(stored, plain)] = await client.rows(
            "SELECT sum(data_compressed_bytes), sum(data_uncompressed_bytes) FROM system.parts "
            "WHERE database = {d:String} AND table = 'blobs' AND active",
            {"d": store._database},
        )
    assert stored * 20 < plain


async def test_a_body_that_was_changed_is_refused(engine: Engine, store: ResultsStore) -> None:
    """M-B2: a digest names one body, or the store says so."""
    async with open_client(engine.endpoint.in_database(store._database)) as client:
        await client.execute("INSERT INTO blobs (digest, size, body, version) VALUES (repeat('a', 64), 1, 'x', 1)")
    with pytest.raises(Terminal, match="changed after it was stored"):
        await store.blobs(["a" * 64])


async def test_a_value_that_does_not_fit_writes_nothing(store: ResultsStore) -> None:
    """M-A8: no value is ever rounded or wrapped; the batch is refused instead."""
    key = make_key()
    for bad in (
        make_event(2, latency_us=-1),
        make_event(2, usd=Decimal("1E-19")),
        make_event(2, usd=Decimal("NaN")),
        make_event(2, ts=ANCHOR.replace(tzinfo=None)),
    ):
        with pytest.raises(InvalidInput, match="event 2 of"):
            await store.write(RecordBatch(events=((key, make_event(1)), (key, bad))))
    assert await store.events(key) == ()


async def test_the_later_grade_of_one_judge_replaces_the_earlier(store: ResultsStore) -> None:
    """M-A9: grading again with the same rubric and judge replaces; another judge adds."""
    grade = GradeRow(key=make_key(), rubric_digest="r", score=Decimal("0.25"), payload="{}")
    judged = replace(grade, judge_model="claude", judge_prompt_digest="p", score=None, payload='{"why":"日本"}')
    await store.write_grades([grade, judged])
    better = replace(grade, score=Decimal("0.5"))
    await store.write_grades([better])
    assert await store.grades("run-1") == (better, judged)


async def test_runs_are_listed_oldest_first_as_last_written(store: ResultsStore) -> None:
    """M-D5: a run's record is what was last written of it."""
    run = RunRow(run="u2", name="b", suite="s", suite_digest="d", created=ANCHOR, verdict="Pending", payload='{"a": 1}')
    older = replace(run, run="u9", name="a", created=ANCHOR - timedelta(days=1))
    for row in (run, older, replace(run, verdict="Pass")):
        await store.write_run(row)
    assert await store.runs() == (older, replace(run, verdict="Pass"))


async def test_migrating_again_changes_nothing(engine: Engine, store: ResultsStore) -> None:
    """M-D6: every process may migrate at its start."""
    await store.write(RecordBatch(attempts=(make_attempt(),)))
    again = ResultsStore(engine.endpoint, store._database)
    await again.migrate()
    assert await again.attempts("run-1") == (make_attempt(),)
    await again.close()


async def test_an_up_to_date_schema_needs_no_right_to_change_it(tmp_path: Path) -> None:
    """M-D2, least privilege: a user that may only read can open a store, and is refused when it writes."""
    async with Engine.start(tmp_path / "data", log=tmp_path / "log", access=Access("proctor"), limits=SMALL) as engine:
        assert engine.agent_endpoint
        owner, reader = ResultsStore(engine.endpoint), ResultsStore(engine.agent_endpoint)
        await owner.migrate()
        await owner.write(RecordBatch(attempts=(make_attempt(),)))
        await reader.migrate()
        assert await reader.attempts("run-1") == (make_attempt(),)
        with pytest.raises(Terminal, match="Not enough privileges"):
            await reader.write(RecordBatch(attempts=(make_attempt(),)))
        await owner.close()
        await reader.close()


async def test_a_newer_or_another_schema_is_refused(engine: Engine, store: ResultsStore) -> None:
    """M-D4: an old Proctor does not write into a new schema."""
    async with open_client(engine.endpoint.in_database(store._database)) as client:
        await client.execute("INSERT INTO schema_migrations VALUES (99, '0099_later.sql', 'x', now())")
        with pytest.raises(Terminal, match=r"version 99, this Proctor knows \d+: upgrade"):
            await store.migrate()
        await client.execute("TRUNCATE TABLE schema_migrations")
        await client.execute("INSERT INTO schema_migrations VALUES (1, '0001_records.sql', 'edited', now())")
    with pytest.raises(Terminal, match="not the one that was applied"):
        await store.migrate()


async def test_a_store_that_is_away_is_worth_another_try(engine: Engine) -> None:
    """Faults: nothing is said against the rows, only against the moment."""
    away = ResultsStore(replace(engine.endpoint, port=1))
    with pytest.raises(Retryable, match="connecting"):
        await away.write(RecordBatch(attempts=(make_attempt(),)))


async def test_a_wrong_password_is_final_and_not_repeated_in_the_message(engine: Engine) -> None:
    """S17: no password in any message."""
    wrong = ResultsStore(replace(engine.endpoint, password="pa55word"))
    with pytest.raises(Terminal, match="Authentication failed") as caught:
        await wrong.migrate()
    await wrong.close()
    assert "pa55word" not in str(caught.value)
