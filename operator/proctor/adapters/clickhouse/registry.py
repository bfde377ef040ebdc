"""Datasets in a ClickHouse of one's own: a database each, which exists once its row is in the table `datasets`.

Renaming is not atomic on clusters, so nothing is renamed: every attempt builds a database of its own name, and the
first whose row is inserted has won. An attempt shows that it lives by a beat; what no longer beats and never committed
is dropped by the next to come. Several workers may share the work, and several servers the rows.
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

from proctor.adapters.clickhouse.attempts import AttemptLog
from proctor.adapters.clickhouse.datasets import (
    Progress,
    Stage,
    compute_facts,
    create_tables,
    digest_database,
    load_rows,
)
from proctor.adapters.clickhouse.parts import PartRegistry, take_parts
from proctor.adapters.clickhouse.shards import Shards, build_dataset, load_shares
from proctor.core.seeding.distributed import LOCAL_SUFFIX
from proctor.core.seeding.identity import GENERATOR_VERSION
from proctor.core.seeding.record import ROLLUP_SUFFIX, DatasetRecord, TableRecord, parse_record
from proctor.core.seeding.sql import name_table, quote
from proctor.errors import InvalidInput, ProctorError, Terminal

if TYPE_CHECKING:
    from proctor.adapters.clickhouse.datasets import OnProgress
    from proctor.adapters.clickhouse.session import SqlSession
    from proctor.adapters.clickhouse.shards import BringRows
    from proctor.core.seeding.facts import FactSheet
    from proctor.core.seeding.plan import SeedPlan
    from proctor.core.seeding.share import Share

_LOOK_SECONDS = 1.0
"""How often a worker that has nothing left to load looks for the others' parts."""


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
    """The datasets of one ClickHouse, of one server or several.

    Args:
        shards: the servers, as a user that may create databases.
        database: where the registry's own tables are, on the first of them.
    """

    def __init__(self, shards: Shards, database: str) -> None:
        self._shards = shards
        self._session: SqlSession = shards.first
        self._datasets = name_table(database, "datasets")
        self._attempts = AttemptLog(self._session, database)
        self._parts = PartRegistry(self._session, database)

    async def prepare(self) -> None:
        """Create the registry's tables if they are missing."""
        await self._session.run(
            f"CREATE TABLE IF NOT EXISTS {self._datasets} (hash String, database String, record String,"
            " committed DateTime64(6, 'UTC') DEFAULT now64(6)) ENGINE = MergeTree ORDER BY (hash, committed)"
        )
        await self._attempts.prepare()
        await self._parts.prepare()

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
        await self._clear()
        record = await self.find(order.hash)
        if record is None:
            load = load_shares(order.plan, self._shards, threads=order.threads, on_progress=on_progress)
            record = await self._build(order, load, on_progress)
        return await self._with_facts(order, record)

    async def ensure_part(
        self, order: SeedOrder, share: Share, on_progress: OnProgress | None = None
    ) -> DatasetRecord | None:
        """Load one of several parts, unless it is there; the worker of the first waits for all and makes the dataset.

        Returns:
            The record; None if the dataset is another worker's to make.

        Raises:
            InvalidInput: a fact query is at fault.
            Retryable: a ClickHouse went away. What is loaded stays, and is found by the next try.
            Terminal: one refused a statement, or the parts hold other rows than the plan says.
        """
        await self._clear()
        record = await self.find(order.hash)
        if record is None:
            if share.part not in await self._parts.find(order.hash, share.parts):
                await self._load_part(order, share, on_progress)
            if share.part > 0:
                return None
            record = await self._put_together(order, share.parts, on_progress)
        return await self._with_facts(order, record)

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
        await self._shards.drop(record.database)

    async def sweep(self) -> int:
        """Drop the databases of dead attempts; return how many there were."""
        committed = f"SELECT database FROM {self._datasets}"
        dead = await self._attempts.dead(committed, self._parts.waiting)
        found: set[str] = set()

        async def look(_: int, session: SqlSession) -> None:
            there = await session.fetch("SELECT name FROM system.databases WHERE name LIKE 'ds\\_%'")
            found.update(dead & {str(name).removesuffix(LOCAL_SUFFIX) for (name,) in there})

        await self._shards.on_each(look)
        for name in sorted(found):
            await self._shards.drop(name)
        return len(found)

    async def _clear(self) -> None:
        await self.prepare()
        await self.sweep()

    async def _with_facts(self, order: SeedOrder, record: DatasetRecord) -> DatasetRecord:
        if order.sheet is None or order.sheet.source in record.sheets:
            return record
        facts = await compute_facts(self._session, order.sheet.queries, record.database)
        record = record.with_facts(order.sheet, facts)
        await self._insert(record)
        return record

    async def _load_part(self, order: SeedOrder, share: Share, on_progress: OnProgress | None) -> None:
        """Load a part into a database of its own, on the server that will hold it."""
        session, database = self._shards.holder(share.part), _new_name(order.hash)
        async with self._attempt(database):
            await create_tables(session, order.plan, database)
            await load_rows(
                session,
                order.plan,
                database,
                threads=order.threads,
                on_progress=on_progress,
                part=share.part,
                parts=share.parts,
            )
            counts = await self._parts.add(order.hash, share, database)
        if not counts:
            await self._shards.drop(database)

    async def _put_together(self, order: SeedOrder, parts: int, on_progress: OnProgress | None) -> DatasetRecord:
        while len(staged := await self._parts.find(order.hash, parts)) < parts:
            if on_progress:
                on_progress(Progress(Stage.WAITING, len(staged), parts))
            await asyncio.sleep(_LOOK_SECONDS)
        try:
            record = await self._build(order, take_parts(order.plan, self._shards, staged), on_progress)
        except Terminal:
            # A try of the same worker that was taken for dead may have been the faster, and taken the parts away.
            made = await self.find(order.hash)
            if made is None:
                await self._drop_parts(order.hash)
                raise
            return made
        await self._drop_parts(order.hash)
        return record

    async def _drop_parts(self, digest: str) -> None:
        for database in await self._parts.all_of(digest):
            await self._shards.drop(database)
        await self._parts.forget(digest)

    async def _build(self, order: SeedOrder, bring: BringRows, on_progress: OnProgress | None) -> DatasetRecord:
        began = time.monotonic()
        database = _new_name(order.hash)
        async with self._attempt(database):
            digests = await build_dataset(
                self._shards, order.plan, database, bring, threads=order.threads, on_progress=on_progress
            )
            await self._shards.start_merges(order.plan, database)
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
        winner = await self.find(order.hash)
        if winner is None or winner.database == database:
            return record
        # Another was first; the rows are the same, so nothing is lost.
        await self._session.run(
            f"ALTER TABLE {self._datasets} DELETE WHERE database = {quote(database)}", {"mutations_sync": 2}
        )
        await self._shards.drop(database)
        return winner

    @asynccontextmanager
    async def _attempt(self, database: str) -> AsyncIterator[None]:
        """Show that an attempt lives; drop its database if it comes to nothing."""
        async with self._attempts.beating(database):
            try:
                yield
            except (ProctorError, asyncio.CancelledError):
                with contextlib.suppress(ProctorError):
                    await self._shards.drop(database)
                raise

    async def _insert(self, record: DatasetRecord) -> None:
        values = ", ".join(quote(value) for value in (record.hash, record.database, record.model_dump_json()))
        await self._session.run(f"INSERT INTO {self._datasets} (hash, database, record) VALUES ({values})")


def _new_name(digest: str) -> str:
    return f"ds_{digest}_{secrets.token_hex(4)}"
