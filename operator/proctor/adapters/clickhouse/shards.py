"""Building a dataset on one server, or on several that each hold a share of its rows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from proctor.adapters.clickhouse.datasets import (
    OnProgress,
    Progress,
    Stage,
    all_tables,
    create_database,
    fill_tables,
    load_rows,
    run_at_once,
    verify_rows,
)
from proctor.adapters.clickhouse.session import SqlSession
from proctor.core.seeding.digest import TableDigest
from proctor.core.seeding.distributed import create_distributed, local_database
from proctor.core.seeding.plan import SeedPlan
from proctor.core.seeding.sql import name_table
from proctor.errors import InvalidInput

BringRows = Callable[[int, SqlSession, str], Awaitable[None]]
"""Fills the empty tables of one shard: given its number, its session and the database there."""


@dataclass(frozen=True)
class Shards:
    """The servers that hold datasets.

    Attributes:
        sessions: one per shard. The first keeps the registry, and is the one that is read.
        cluster: what the servers call themselves in `remote_servers`; empty for one server by itself.
    """

    sessions: Sequence[SqlSession]
    cluster: str = ""

    def __post_init__(self) -> None:
        if len(self.sessions) > 1 and not self.cluster:
            raise InvalidInput("several ClickHouse servers: say by which name they know each other (--cluster)")

    @property
    def first(self) -> SqlSession:
        """The server that is asked."""
        return self.sessions[0]

    def number_of(self, part: int) -> int:
        """Return the number of the server that takes a part."""
        return part % len(self.sessions)

    def holder(self, part: int) -> SqlSession:
        """Return the server that takes a part."""
        return self.sessions[self.number_of(part)]

    def local(self, database: str) -> str:
        """Return the name of the database that holds rows, on each server."""
        return local_database(database) if self.cluster else database

    async def on_each(self, work: Callable[[int, SqlSession], Awaitable[None]]) -> None:
        """Do something on every server, on all at once."""
        await run_at_once([partial(work, *one) for one in enumerate(self.sessions)], len(self.sessions))

    async def drop(self, database: str) -> None:
        """Drop a database, and what it reads from, wherever they are."""

        async def drop(_: int, session: SqlSession) -> None:
            for name in (database, local_database(database)):
                await session.run(f"DROP DATABASE IF EXISTS `{name}` SYNC")

        await self.on_each(drop)

    async def start_merges(self, plan: SeedPlan, database: str) -> None:
        """Let the servers merge a finished dataset's parts as they like."""

        async def start(_: int, session: SqlSession) -> None:
            for table in all_tables(plan.tables):
                await session.run(f"SYSTEM START MERGES {name_table(self.local(database), table)}")

        await self.on_each(start)


async def build_dataset(
    shards: Shards,
    plan: SeedPlan,
    database: str,
    bring: BringRows,
    *,
    threads: int = 2,
    on_progress: OnProgress | None = None,
) -> dict[str, TableDigest]:
    """Build all tables of a dataset in a database of their own, and verify them.

    Args:
        shards: where.
        plan: what to build.
        database: its name; must not exist.
        bring: fills the raw tables.
        threads: how many statements run at a time on each server.
        on_progress: told at each stage.

    Returns:
        Rows and digest per table, rollups included: the same however many servers there are.

    Raises:
        Retryable: a ClickHouse went away.
        Terminal: one refused a statement, or they hold other rows than the plan says.
    """
    tell = on_progress or (lambda _: None)
    local = shards.local(database)

    async def fill(number: int, session: SqlSession) -> None:
        await create_database(session, local)
        await fill_tables(session, plan, local, partial(bring, number, session, local), threads=threads, tell=tell)

    async def span(_: int, session: SqlSession) -> None:
        await session.run(f"CREATE DATABASE `{database}`")
        for table in all_tables(plan.tables):
            await session.run(create_distributed(database, table, shards.cluster))

    await shards.on_each(fill)
    if shards.cluster:
        await shards.on_each(span)
    tell(Progress(Stage.VERIFYING, plan.rows(), plan.rows()))
    return await verify_rows(shards.first, plan, database, threads=threads)


def load_shares(
    plan: SeedPlan, shards: Shards, *, threads: int = 2, on_progress: OnProgress | None = None
) -> BringRows:
    """Return what loads each server's share of the rows."""
    parts = len(shards.sessions)
    done = [0] * parts

    async def load(number: int, session: SqlSession, database: str) -> None:
        def show(progress: Progress) -> None:
            done[number] = progress.rows
            if on_progress:
                on_progress(replace(progress, rows=sum(done), total=plan.rows()))

        await load_rows(session, plan, database, threads=threads, on_progress=show, part=number, parts=parts)

    return load
