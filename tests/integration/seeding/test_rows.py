"""The rows are a function of their inputs, whatever way they are made."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from itertools import count

import pytest

from proctor.adapters.clickhouse import datasets
from proctor.adapters.clickhouse.session import HttpSession
from proctor.core.scenarios.recipe import load_recipe
from proctor.core.seeding import rollups
from proctor.core.seeding.digest import TableDigest
from proctor.core.seeding.plan import SeedPlan, compile_plan
from support.seeding import ANCHOR, SHIPPED, load_everything, make_plan

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="module")]

_NAMES = (f"ds_{number:016x}_1" for number in count(1))
PLANTED = (
    "SELECT TraceId FROM otel_traces WHERE SpanName = 'postgres.connect' AND SpanAttributes['error.type'] = 'DBTimeout'"
)
CHAIN = f"SELECT * FROM otel_traces WHERE TraceId IN ({PLANTED})"


async def _load(session: HttpSession, plan: SeedPlan, *, parts: int = 1, threads: int = 2) -> str:
    database = next(_NAMES)
    await datasets.create_tables(session, plan, database)
    for part in reversed(range(parts)):
        await datasets.load_rows(session, plan, database, part=part, parts=parts, threads=threads)
    await datasets.fill_rollups(session, database, threads=threads)
    return database


async def _digests(session: HttpSession, plan: SeedPlan, database: str) -> dict[str, TableDigest]:
    return await datasets.digest_database(session, plan.tables, database)


async def _ask(session: HttpSession, database: str, query: str) -> list[tuple[object, ...]]:
    return await session.fetch(query, {"database": database})


async def test_threads_and_partitions_change_nothing(session: HttpSession) -> None:
    """M-A1, P39: identical digests of all tables at 1 and 2 threads, and for 1, 4 and 7 partitions."""
    plan = make_plan(load_everything(), volume="0.2")
    ways = [(1, 1), (1, 2), (4, 2), (7, 1)]
    found = [
        await _digests(session, plan, await _load(session, plan, parts=parts, threads=threads))
        for parts, threads in ways
    ]
    assert all(digests == found[0] for digests in found)
    assert len(found[0]) == 7 + 4
    assert all(one.rows for one in found[0].values())


async def test_rollups_are_what_the_views_would_have_written(session: HttpSession) -> None:
    """M-A2: filling after the load gives the rows of production's chained materialized views."""
    plan = make_plan(load_everything(), volume="0.2")
    after = await _load(session, plan)
    during = next(_NAMES)
    await datasets.create_tables(session, plan, during)
    for table in rollups.ROLLED_UP:
        for statement in rollups.create_views(during, table):
            await session.run(statement)
    await datasets.load_rows(session, plan, during)
    assert await _digests(session, plan, during) == await _digests(session, plan, after)
    query = "SELECT DISTINCT Key FROM otel_traces_key_rollup_15m WHERE Key LIKE 'items%'"
    assert await _ask(session, after, query) == [("items[*].sku",)]


async def test_an_anchor_moves_instants_and_nothing_else(session: HttpSession) -> None:
    """M-A1: the same rows at another anchor, shifted."""
    recipe, delta = load_everything(), timedelta(days=2, seconds=1)
    first = await _load(session, make_plan(recipe, volume="0.1"))
    second = await _load(session, make_plan(recipe, volume="0.1", anchor=ANCHOR + delta))
    for table in ("otel_traces", "otel_logs"):
        others = f"SELECT count(), sum(cityHash64(* EXCEPT Timestamp)) FROM {table}"
        assert await _ask(session, first, others) == await _ask(session, second, others)
    shift = delta // timedelta(microseconds=1) * 1000
    query = "SELECT TraceId, SpanId, toInt64(toUnixTimestamp64Nano(Timestamp)) FROM otel_traces ORDER BY ALL"
    before, after = await _ask(session, first, query), await _ask(session, second, query)
    assert {int(str(new[2])) - int(str(old[2])) for old, new in zip(before, after, strict=True)} == {shift}


async def test_another_seed_makes_other_rows(session: HttpSession) -> None:
    """M-A1: the seed is part of every draw."""
    recipe = load_everything()
    digests = [
        await _digests(session, plan, await _load(session, plan))
        for plan in (make_plan(recipe, volume="0.05", seed=seed) for seed in (1, 2))
    ]
    assert all(digests[0][name].digest != digests[1][name].digest for name in ("otel_logs", "otel_traces"))


async def test_verification_counts_rows_apart_from_making_them(session: HttpSession) -> None:
    """Issue, part 4: a row too many or too few is found before the commit."""
    from proctor.errors import Terminal

    plan = make_plan(load_everything(), volume="0.05")
    database = await _load(session, plan)
    await datasets.verify_rows(session, plan, database)
    await session.run(f"INSERT INTO `{database}`.otel_logs (Body) VALUES ('one too many')")
    with pytest.raises(Terminal, match=r"otel_logs has .* instead of"):
        await datasets.verify_rows(session, plan, database)


async def test_draws_follow_their_recipe(session: HttpSession) -> None:
    """M-A3: segments, ramps, rollouts, bursts, dealt counts and metric curves come out as written."""
    database = await _load(session, make_plan(load_everything()))
    checks = {
        "planted codes": (("SELECT countIf(StatusMessage = 'boom FREESHIP'), countIf(StatusMessage = 'boom SAVE10')"
        " FROM otel_traces"), ("5", "3")),
        "children inside parents": (
            ("SELECT count() > 1000, max(inner.Timestamp + toIntervalNanosecond(inner.Duration) >"
            " root.Timestamp + toIntervalNanosecond(root.Duration)) FROM otel_traces AS root"
            " JOIN otel_traces AS inner ON inner.ParentSpanId = root.SpanId WHERE inner.SpanKind = 'Client'"), (1, 0)),
        "new version only after its moment": (
            ("SELECT min(Timestamp) >= toDateTime64('2026-11-30 11:15:00', 9, 'UTC'), uniqExact(ServiceName),"
            " uniqExact(ResourceAttributes['k8s.pod.name'])"
            " FROM otel_traces WHERE ResourceAttributes['service.version'] = '2.0.0-rc1'"), (1, "1", "3")),
        "ramp": (("SELECT countIf(SpanName LIKE '%/v2%' AND Timestamp < toDateTime64('2026-11-30 11:00:00', 9, 'UTC'))"
        " , countIf(SpanName LIKE '%/v2%') > 50 FROM otel_traces"), ("0", 1)),
        "sawtooth": ("SELECT min(Value), max(Value) > 1900, max(Value) <= 2070 FROM otel_metrics_gauge", (600, 1, 1)),
        "before the leak": (("SELECT max(Value) <= 720 FROM otel_metrics_gauge"
        " WHERE TimeUnix < toDateTime('2026-11-30 10:30:00', 'UTC')"), (1,)),
        "histogram": ("SELECT sum(Count) = sum(arraySum(BucketCounts)) FROM otel_metrics_histogram", (1,)),
        "omitted attribute": (("SELECT countIf(mapContains(ResourceAttributes, 'service.version')),"
        " count() > 100 FROM otel_traces WHERE ServiceName = 'store'"), ("0", 1)),
        "metric of a whole service": (("SELECT countIf(mapContains(ResourceAttributes, 'k8s.pod.name')),"
        " groupUniqArray(length(ResourceAttributes)) FROM otel_metrics_summary"), ("0", ["14"])),
        "never the caller": ("SELECT uniqExact(Body) > 3 FROM otel_logs WHERE Body LIKE '% on worker'", (1,)),
        "severities as spelled": ("SELECT groupUniqArray(SeverityNumber) FROM otel_logs WHERE SeverityText = 'warn'",
        ([13],)),
    }  # fmt: skip
    for name, (query, expected) in checks.items():
        assert (name, (await _ask(session, database, query))[0]) == (name, expected)


async def test_planted_rows_are_the_same_at_every_volume(session: HttpSession) -> None:
    """P39: more background moves no planted row."""
    found = []
    for volume in ("0.0005", "0.002"):
        plan = compile_plan(load_recipe(SHIPPED), seed=42, anchor=ANCHOR, volume=Decimal(volume))
        database = await _load(session, plan)
        chain = await _ask(session, database, f"SELECT count(), sum(cityHash64(*)) FROM ({CHAIN})")
        logs = f"SELECT count(), sum(cityHash64(*)) FROM otel_logs WHERE TraceId IN ({PLANTED})"
        found.append((chain, await _ask(session, database, logs)))
    assert found[0] == found[1]
    assert (found[0][0][0][0], found[0][1][0][0]) == ("24", "8")


DECOYS = {
    # error.type: spans, from and until in seconds before the anchor
    "TLSHandshakeError": (50, 1500, 1200),
    "RateLimited": (20, 2400, 2280),
    "PaymentDeclined": (200, 3600, 0),
    "SMTPConnectionRefused": (25, 300, 0),
    "OriginRefused": (80, 300, 0),
}


@pytest.fixture(scope="module")
def planted_database() -> dict[str, str]:
    return {}


async def _shipped(session: HttpSession, cache: dict[str, str]) -> str:
    if "name" not in cache:
        plan = compile_plan(load_recipe(SHIPPED), seed=7, anchor=ANCHOR, volume=Decimal("0.002"))
        cache["name"] = await _load(session, plan)
    return cache["name"]


@pytest.mark.parametrize("kind", DECOYS)
async def test_decoys_are_where_the_recipe_says(
    session: HttpSession, planted_database: dict[str, str], kind: str
) -> None:
    """M-A3: each decoy with its count and its time."""
    count_, begin, end = DECOYS[kind]
    query = (
        "SELECT count(), toUnixTimestamp64Nano(min(Timestamp)), toUnixTimestamp64Nano(max(Timestamp)) FROM otel_traces"
        f" WHERE SpanAttributes['error.type'] = '{kind}'"
    )
    ((rows, first, last),) = await _ask(session, await _shipped(session, planted_database), query)
    anchor = int(ANCHOR.timestamp()) * 10**9
    assert int(str(rows)) == count_
    assert anchor - begin * 10**9 <= int(str(first)) <= int(str(last)) <= anchor - end * 10**9 + 10**9


async def test_the_planted_chain_is_whole(session: HttpSession, planted_database: dict[str, str]) -> None:
    """M-A3: root, charge and connect, their times nested, three wordings 3, 3 and 2, one ERROR log each."""
    database = await _shipped(session, planted_database)
    hops = await _ask(
        session,
        database,
        "SELECT SpanName, count(), min(Duration) / 1e9, max(Duration) / 1e9,"
        " min(Timestamp) >= toDateTime64('2026-11-30 11:55:00', 9, 'UTC'),"
        " max(Timestamp) < toDateTime64('2026-11-30 12:00:00', 9, 'UTC')"
        f" FROM ({CHAIN}) WHERE StatusCode = 'Error' GROUP BY SpanName ORDER BY SpanName",
    )
    bounds = {"POST /api/checkout": (2.2, 3.2), "payments.charge": (2.0, 2.9), "postgres.connect": (1.9, 2.5)}
    assert [str(hop[0]) for hop in hops] == list(bounds)
    for name, rows, shortest, longest, is_after, is_before in hops:
        low, high = bounds[str(name)]
        assert rows == "8"
        assert low <= float(str(shortest)) <= float(str(longest)) <= high
        assert (is_after, is_before) == (1, 1)
    wordings = (
        f"SELECT count() AS n FROM ({CHAIN}) WHERE SpanName = 'postgres.connect' GROUP BY StatusMessage ORDER BY n"
    )
    assert await _ask(session, database, wordings) == [("2",), ("3",), ("3",)]
    logs = (
        "SELECT count(), uniqExact(TraceId), groupUniqArray(SeverityText), groupUniqArray(LogAttributes['error.kind'])"
        f" FROM otel_logs WHERE TraceId IN ({PLANTED})"
    )
    assert await _ask(session, database, logs) == [("8", "8", ["ERROR"], ["DBTimeout"])]


async def test_the_world_has_what_the_truth_is_made_of(session: HttpSession, planted_database: dict[str, str]) -> None:
    """Scenarios, no tells: three hops, payment errors, that database and the last seconds are ordinary too."""
    database = await _shipped(session, planted_database)
    ordinary = f"TraceId NOT IN ({PLANTED})"
    for condition in (
        "SpanName = 'postgres.connect' AND StatusCode = 'Error'",
        "SpanName = 'payments.charge' AND StatusCode = 'Error'",
        "SpanName = 'POST /api/checkout' AND StatusCode = 'Error'",
        "SpanAttributes['server.address'] = 'payments-pg-2.db.fernway.internal'",
        "Timestamp > toDateTime64('2026-11-30 11:59:58', 9, 'UTC')",
    ):
        ((rows,),) = await _ask(session, database, f"SELECT count() FROM otel_traces WHERE {condition} AND {ordinary}")
        assert int(str(rows)) >= 5, condition


async def test_two_scripted_readings_part_ways(session: HttpSession, planted_database: dict[str, str]) -> None:
    """M-A3: the loudest error of the window is a decoy; the new one whose trace is deepest is the truth."""
    database = await _shipped(session, planted_database)
    window = "Timestamp >= toDateTime64('2026-11-30 11:50:00', 9, 'UTC')"
    errors = "StatusCode = 'Error' AND StatusMessage != ''"
    loudest = (
        f"SELECT StatusMessage FROM otel_traces WHERE {errors} AND {window} GROUP BY 1 ORDER BY count() DESC LIMIT 1"
    )
    assert await _ask(session, database, loudest) == [("origin refused connection",)]
    newest = (
        "SELECT StatusMessage FROM otel_traces JOIN"
        " (SELECT TraceId, count() AS depth FROM otel_traces GROUP BY TraceId)"
        f" AS sizes USING TraceId WHERE {errors} GROUP BY ServiceName, SpanName, StatusMessage"
        f" HAVING min(Timestamp) >= toDateTime64('2026-11-30 11:50:00', 9, 'UTC')"
        " ORDER BY max(depth) DESC, count() DESC LIMIT 3"
    )
    found = [str(row[0]) for row in await _ask(session, database, newest)]
    assert len(found) == 3
    assert all("payments-pg-2.db.fernway.internal" in message for message in found)
