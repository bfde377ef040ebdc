"""Building one dataset in a ClickHouse: load, roll up, verify. Committing it is the caller's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from proctor.adapters.clickhouse.session import Settings, SqlSession
from proctor.core.seeding import rollups
from proctor.core.seeding.digest import TableDigest, digest_query, read_digest
from proctor.core.seeding.facts import FactQuery, FactValue, read_fact
from proctor.core.seeding.fleet import drop_fleet
from proctor.core.seeding.plan import Insertion, SeedPlan
from proctor.core.seeding.schema import create_table, tables_for
from proctor.core.seeding.sql import name_table
from proctor.errors import ProctorError, Terminal

_FACT_LIMITS: Settings = {
    "readonly": 1,
    "max_result_rows": 2,
    # Over several servers, a subquery or a join is of all their rows.
    "distributed_product_mode": "global",
}
_FACT_SECONDS = 120
_FACTS_AT_ONCE = 4
_ONE_BLOCK: Settings = {
    # A chunk becomes one part: blocks are gathered by rows alone.
    "min_insert_block_size_rows": 2_000_000,
    "min_insert_block_size_bytes": 0,
    "max_insert_block_size": 2_000_000,
    "max_block_size": 65_536,
    # Each worker is one thread: two statements at a time use two cores better than one statement of two threads,
    # since compressing and indexing a block is single-threaded.
    "max_threads": 1,
    "max_insert_threads": 1,
    # The rows come in the order of the table; the engine need only see that they do.
    "optimize_on_insert": 0,
}
_FEW_ROWS = 2_000_000
_AS_WRITTEN: Settings = {
    # Of few rows, a statement is carried out sooner than it would be compiled and simplified: it is long.
    "compile_expressions": 0,
    "query_plan_merge_expressions": 0,
}


class Stage(StrEnum):
    """What seeding is doing."""

    LOADING = "loading"
    WAITING = "waiting for other parts"
    ROLLING_UP = "rolling up"
    VERIFYING = "verifying"


@dataclass(frozen=True)
class Progress:
    """How far seeding is.

    Attributes:
        stage: what it is doing.
        rows: row numbers done; of waiting, parts that are loaded.
        total: how many there are in all.
    """

    stage: Stage
    rows: int
    total: int


OnProgress = Callable[[Progress], None]


async def fill_database(
    session: SqlSession, plan: SeedPlan, database: str, *, threads: int = 2, on_progress: OnProgress | None = None
) -> dict[str, TableDigest]:
    """Build all tables of a dataset in a database that `create_database` has made, and verify them.

    Args:
        session: the ClickHouse.
        plan: what to build.
        database: its name.
        threads: how many statements run at a time.
        on_progress: told after each statement.

    Returns:
        Rows and digest per table, rollups included.

    Raises:
        Retryable: the ClickHouse went away.
        Terminal: it refused a statement, or holds other rows than the plan says.
    """
    tell = on_progress or (lambda _: None)
    load = partial(load_rows, session, plan, database, threads=threads, on_progress=tell)
    await fill_tables(session, plan, database, load, threads=threads, tell=tell)
    tell(Progress(Stage.VERIFYING, plan.rows(), plan.rows()))
    return await verify_rows(session, plan, database, threads=threads)


async def fill_tables(
    session: SqlSession,
    plan: SeedPlan,
    database: str,
    bring: Callable[[], Awaitable[None]],
    *,
    threads: int,
    tell: OnProgress,
) -> None:
    """Make what a plan adds to a new database, let its rows be brought, and roll them up."""
    await _create_rest(session, plan, database)
    await bring()
    await session.run(drop_fleet(database))
    tell(Progress(Stage.ROLLING_UP, plan.rows(), plan.rows()))
    await fill_rollups(session, database, threads=threads)


async def create_database(session: SqlSession, database: str, *, threads: int = 2) -> None:
    """Create a database and what every dataset has, whatever its recipe: two tables and their rollups.

    The views follow once the rollups are filled.
    """
    await session.run(f"CREATE DATABASE `{database}`")
    creations = {table: create_table(database, table) for table in tables_for(())}
    for table in rollups.ROLLED_UP:
        names = (rollups.kv_table(table), rollups.key_table(table))
        creations |= zip(names, rollups.create_rollups(database, table), strict=True)
    await run_at_once([partial(_create, session, database, *one) for one in creations.items()], threads)


async def create_tables(session: SqlSession, plan: SeedPlan, database: str) -> None:
    """Create the database and all tables of a plan, empty."""
    await create_database(session, database)
    await _create_rest(session, plan, database)


async def _create_rest(session: SqlSession, plan: SeedPlan, database: str) -> None:
    for table in sorted({*plan.tables} - {*tables_for(())}):
        await _create(session, database, table, create_table(database, table))
    for statement in plan.fleet.create(database):
        await session.run(statement)


async def _create(session: SqlSession, database: str, table: str, statement: str) -> None:
    await session.run(statement)
    # Merging while loading costs a third of the load, and the parts are large already. Of a rollup nothing would come
    # together: its rows are grouped before they come in. And an engine that merges nothing can be ended at any time.
    await session.run(f"SYSTEM STOP MERGES {name_table(database, table)}")


async def load_rows(  # noqa: PLR0913 - a part of a range has two numbers
    session: SqlSession,
    plan: SeedPlan,
    database: str,
    *,
    threads: int = 2,
    on_progress: OnProgress | None = None,
    part: int = 0,
    parts: int = 1,
) -> None:
    """Load the rows of one of several parts of a dataset into its tables."""
    insertions = list(plan.insertions(database, part=part, parts=parts))
    total, done = sum(one.rows for one in insertions), 0
    settings = {**_ONE_BLOCK, **_AS_WRITTEN} if total < _FEW_ROWS else _ONE_BLOCK

    async def insert(insertion: Insertion) -> None:
        nonlocal done
        await session.run(insertion.sql, settings)
        done += insertion.rows
        if on_progress:
            on_progress(Progress(Stage.LOADING, done, total))

    await run_at_once([partial(insert, one) for one in insertions], threads)


async def fill_rollups(session: SqlSession, database: str, *, threads: int = 2) -> None:
    """Fill the rollups from the loaded tables, then create the views that keep them filled."""

    async def fill(table: str) -> None:
        for statement in rollups.fill_rollups(database, table):
            await session.run(statement, _share(threads, len(rollups.ROLLED_UP)))
        for statement in rollups.create_views(database, table):
            await session.run(statement)

    await run_at_once([partial(fill, table) for table in rollups.ROLLED_UP], threads)


async def verify_rows(
    session: SqlSession, plan: SeedPlan, database: str, *, threads: int = 2
) -> dict[str, TableDigest]:
    """Return rows and digest per table.

    Raises:
        Terminal: a table has more or fewer rows than the plan.
    """
    digests: dict[str, TableDigest] = {}
    expected, queries = plan.expected_rows()

    async def count(query: str, tables: list[str]) -> None:
        (counts,) = await session.fetch(query, {"max_threads": 1, **_AS_WRITTEN})
        for table, rows in zip(tables, counts, strict=True):
            expected[table] += int(str(rows))

    jobs = _digest_jobs(session, plan.tables, database, digests, threads=threads)
    await run_at_once([*jobs, *(partial(count, query, tables) for query, tables in queries)], threads)
    for table, rows in expected.items():
        if digests[table].rows != rows:
            raise Terminal(f"dataset {database}: {table} has {digests[table].rows} rows instead of {rows}")
    return dict(sorted(digests.items()))


async def digest_database(
    session: SqlSession, tables: tuple[str, ...], database: str, *, threads: int = 2
) -> dict[str, TableDigest]:
    """Return rows and digest of the given raw tables and of all rollups, as they are now."""
    found: dict[str, TableDigest] = {}
    await run_at_once(_digest_jobs(session, tables, database, found, threads=threads), threads)
    return dict(sorted(found.items()))


def _digest_jobs(
    session: SqlSession, tables: tuple[str, ...], database: str, found: dict[str, TableDigest], *, threads: int
) -> list[Callable[[], Awaitable[None]]]:
    """Return one job per table, those that take longest first; each leaves what it found."""

    async def digest(name: str) -> None:
        (row,) = await session.fetch(digest_query(database, name), _share(threads, 2))
        found[name] = read_digest(row)

    return [partial(digest, name) for name in all_tables(tables)]


def all_tables(tables: tuple[str, ...]) -> list[str]:
    """Return the names of raw tables and of all rollups, the largest tables first."""
    pairs = [(rollups.kv_table(table), rollups.key_table(table)) for table in rollups.ROLLED_UP]
    return [*reversed(tables), *(name for pair in pairs for name in pair)]


async def compute_facts(
    session: SqlSession, queries: Mapping[str, FactQuery], database: str, *, seconds: int = _FACT_SECONDS
) -> dict[str, FactValue]:
    """Run fact queries over a dataset.

    Args:
        session: asks them.
        queries: the queries, by the facts' names.
        database: the dataset's.
        seconds: how long one may take.

    Raises:
        InvalidInput: a query returned another shape or type than it declares.
        Terminal: the ClickHouse refused a query.
    """
    facts: dict[str, FactValue] = {}

    async def ask(name: str, query: FactQuery) -> None:
        rows = await session.fetch(query.sql, {**_FACT_LIMITS, "max_execution_time": seconds, "database": database})
        facts[name] = read_fact(name, query.type, rows)

    await run_at_once([partial(ask, name, query) for name, query in queries.items()], _FACTS_AT_ONCE)
    return {name: facts[name] for name in queries}


async def run_at_once(jobs: Sequence[Callable[[], Awaitable[None]]], workers: int) -> None:
    """Run jobs, some at a time, in order; the first failure ends all."""
    waiting = iter(jobs)

    async def work() -> None:
        for job in waiting:
            await job()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(work())
    except BaseExceptionGroup as failures:
        # Not `except*`: what is raised in there would come out in a group again, and nobody acts on groups.
        known = failures.subgroup(ProctorError)
        if known is None:
            raise
        # One reason is enough to act on; the others were cut short by it.
        raise _first(known) from failures


def _first(failures: BaseExceptionGroup[ProctorError]) -> ProctorError:
    first = failures.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _share(threads: int, statements: int) -> Settings:
    """Return the settings of one of several statements that run at a time."""
    return {"max_threads": max(1, threads // statements), "max_insert_threads": 1}
