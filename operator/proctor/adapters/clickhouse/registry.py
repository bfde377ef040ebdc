"""Datasets in a ClickHouse of one's own: a database each, which exists once its row is in the table `datasets`.

Renaming is not atomic on clusters, so nothing is renamed: every attempt builds a database of its own name, and the
first whose row is inserted has won. An attempt shows that it lives by a beat; what no longer beats and never committed
is dropped by the next to come.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.adapters.clickhouse.datasets import all_tables, build_dataset, compute_facts, digest_database
from proctor.core.seeding.identity import GENERATOR_VERSION
from proctor.core.seeding.record import ROLLUP_SUFFIX, DatasetRecord, TableRecord, parse_record
from proctor.core.seeding.sql import name_table, quote
from proctor.errors import InvalidInput, ProctorError

if TYPE_CHECKING:
    from proctor.adapters.clickhouse.datasets import OnProgress
    from proctor.adapters.clickhouse.session import SqlSession
    from proctor.core.seeding.facts import FactSheet
    from proctor.core.seeding.plan import SeedPlan

_BEAT_SECONDS = 5.0
_DEAD_SECONDS = 60
"""An attempt without a beat for so long is dead; a busy server may delay several."""


@dataclass(frozen=True)
class SeedOrder:
    """A dataset to build in a ClickHouse.

    Attributes:
        hash: its hash.
        label: the scenario's name, for people.
        plan: what it is made of.
        sheet: the fact queries of its scenario's answer key, if there is one.
        threads: how many statements run at a time.
    """

    hash: str
    label: str
    plan: SeedPlan
    sheet: FactSheet | None
    threads: int = 2


class DatasetRegistry:
    """The datasets of one ClickHouse.

    Args:
        session: the ClickHouse, as a user that may create databases.
        database: where the registry's own two tables are.
    """

    def __init__(self, session: SqlSession, database: str) -> None:
        self._session = session
        self._datasets = name_table(database, "datasets")
        self._attempts = name_table(database, "dataset_attempts")

    async def prepare(self) -> None:
        """Create the registry's tables if they are missing."""
        await self._session.run(
            f"CREATE TABLE IF NOT EXISTS {self._datasets} (hash String, database String, record String,"
            " committed DateTime64(6, 'UTC') DEFAULT now64(6)) ENGINE = MergeTree ORDER BY (hash, committed)"
        )
        await self._session.run(
            f"CREATE TABLE IF NOT EXISTS {self._attempts} (database String,"
            " beat DateTime64(3, 'UTC') DEFAULT now64(3)) ENGINE = ReplacingMergeTree(beat) ORDER BY database"
        )

    async def find(self, digest: str) -> DatasetRecord | None:
        """Return the record of a committed dataset: of the first commit, with whatever was added to it since."""
        rows = await self._session.fetch(
            f"SELECT record FROM {self._datasets} WHERE hash = {quote(digest)} AND database ="
            f" (SELECT database FROM {self._datasets} WHERE hash = {quote(digest)}"
            " ORDER BY committed, database LIMIT 1) ORDER BY committed DESC LIMIT 1"
        )
        return parse_record(str(rows[0][0]), f"{digest} in {self._datasets}") if rows else None

    async def all(self) -> tuple[DatasetRecord, ...]:
        """Return the records of all committed datasets, by hash."""
        hashes = await self._session.fetch(f"SELECT DISTINCT hash FROM {self._datasets} ORDER BY hash")
        found = [await self.find(str(digest)) for (digest,) in hashes]
        return tuple(record for record in found if record is not None)

    async def ensure(self, order: SeedOrder, on_progress: OnProgress | None = None) -> DatasetRecord:
        """Return a dataset's record, building the dataset or computing its facts if they are missing.

        Raises:
            InvalidInput: a fact query is at fault.
            Retryable: the ClickHouse went away.
            Terminal: it refused a statement, or holds other rows than the plan says.
        """
        await self.prepare()
        await self.sweep()
        record = await self.find(order.hash)
        if record is None:
            record = await self._build(order, on_progress)
        if order.sheet is not None and order.sheet.source not in record.sheets:
            facts = await compute_facts(self._session, order.sheet.queries, record.database)
            record = record.with_facts(order.sheet, facts)
            await self._insert(record)
        return record

    async def verify(self, record: DatasetRecord, *, threads: int = 2) -> list[str]:
        """Return what differs from a record."""
        raw = tuple(name for name in record.tables if not name.endswith(ROLLUP_SUFFIX))
        return record.differences(await digest_database(self._session, raw, record.database, threads=threads))

    async def remove(self, digest: str) -> None:
        """Remove a dataset: first its row, so that nobody finds what is half gone.

        Raises:
            InvalidInput: there is none.
        """
        record = await self.find(digest)
        if record is None:
            raise InvalidInput(f"dataset {digest}: there is none of that hash")
        await self._session.run(
            f"ALTER TABLE {self._datasets} DELETE WHERE hash = {quote(digest)}", {"mutations_sync": 2}
        )
        await self._session.run(f"DROP DATABASE IF EXISTS `{record.database}` SYNC")

    async def sweep(self) -> int:
        """Drop the databases of dead attempts; return how many there were."""
        dead = await self._session.fetch(
            f"SELECT name FROM system.databases WHERE match(name, '^ds_[0-9a-f]{{16}}_[0-9a-z]+$')"
            f" AND name NOT IN (SELECT database FROM {self._datasets}) AND name IN"
            f" (SELECT database FROM {self._attempts} GROUP BY database"
            f" HAVING max(beat) < now64(3) - INTERVAL {_DEAD_SECONDS} SECOND)"
        )
        for (name,) in dead:
            await self._session.run(f"DROP DATABASE IF EXISTS `{name}` SYNC")
        return len(dead)

    async def _build(self, order: SeedOrder, on_progress: OnProgress | None) -> DatasetRecord:
        began = time.monotonic()
        database = f"ds_{order.hash}_{secrets.token_hex(4)}"
        async with self._beating(database):
            try:
                digests = await build_dataset(
                    self._session, order.plan, database, threads=order.threads, on_progress=on_progress
                )
                for table in all_tables(order.plan.tables):
                    await self._session.run(f"SYSTEM START MERGES {name_table(database, table)}")
                record = DatasetRecord(
                    hash=order.hash,
                    database=database,
                    generator=GENERATOR_VERSION,
                    recipe=order.plan.recipe.digest,
                    label=order.label,
                    seed=order.plan.seed,
                    anchor=order.plan.anchor,
                    volume=order.plan.volume,
                    tables={name: TableRecord(rows=one.rows, digest=one.digest) for name, one in digests.items()},
                    seconds=round(time.monotonic() - began, 3),
                )
                await self._insert(record)
            except (ProctorError, asyncio.CancelledError):
                with contextlib.suppress(ProctorError):
                    await self._session.run(f"DROP DATABASE IF EXISTS `{database}` SYNC")
                raise
        winner = await self.find(order.hash)
        if winner is None or winner.database == database:
            return record
        # Another was first; the rows are the same, so nothing is lost.
        await self._session.run(
            f"ALTER TABLE {self._datasets} DELETE WHERE database = {quote(database)}", {"mutations_sync": 2}
        )
        await self._session.run(f"DROP DATABASE IF EXISTS `{database}` SYNC")
        return winner

    async def _insert(self, record: DatasetRecord) -> None:
        values = ", ".join(quote(value) for value in (record.hash, record.database, record.model_dump_json()))
        await self._session.run(f"INSERT INTO {self._datasets} (hash, database, record) VALUES ({values})")

    @asynccontextmanager
    async def _beating(self, database: str) -> AsyncIterator[None]:
        """Show that an attempt lives, from before its database exists."""

        async def beat() -> None:
            await self._session.run(f"INSERT INTO {self._attempts} (database) VALUES ({quote(database)})")

        async def keep_beating() -> None:
            while True:
                await asyncio.sleep(_BEAT_SECONDS)
                # One lost beat does no harm; a ClickHouse that is away fails the build itself.
                with contextlib.suppress(ProctorError):
                    await beat()

        await beat()
        task = asyncio.create_task(keep_beating())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
