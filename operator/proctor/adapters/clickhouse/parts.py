"""Parts of a dataset that several workers load: each in a database of its own, until all are there.

A worker that is tried again must not double its rows. So every try loads into a database of another name, and the first
whose row is in the table `dataset_parts` is the part; any other is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping

from proctor.adapters.clickhouse.session import SqlSession
from proctor.adapters.clickhouse.shards import BringRows, Shards
from proctor.core.seeding.plan import SeedPlan
from proctor.core.seeding.share import Share
from proctor.core.seeding.sql import name_table, quote

_KEPT = "1 DAY"
"""For so long a part waits for the others; then it is taken for abandoned."""


class PartRegistry:
    """Which parts are loaded.

    Args:
        session: the server that has the registry.
        database: where its tables are.
    """

    def __init__(self, session: SqlSession, database: str) -> None:
        self._session = session
        self._table = name_table(database, "dataset_parts")

    @property
    def waiting(self) -> str:
        """A query for the databases of the parts that wait for others."""
        return f"SELECT database FROM {self._table} WHERE loaded > now64(6) - INTERVAL {_KEPT}"

    async def prepare(self) -> None:
        """Create the table if it is missing."""
        await self._session.run(
            f"CREATE TABLE IF NOT EXISTS {self._table} (hash String, part UInt16, parts UInt16, database String,"
            " loaded DateTime64(6, 'UTC') DEFAULT now64(6)) ENGINE = MergeTree ORDER BY (hash, parts, part, loaded)"
        )

    async def find(self, digest: str, parts: int) -> dict[int, str]:
        """Return the databases of the parts that are loaded, of so many, by their numbers."""
        rows = await self._session.fetch(
            f"SELECT part, database FROM {self._table} WHERE hash = {quote(digest)} AND parts = {parts}"
            f" AND database IN ({self.waiting}) ORDER BY part, loaded, database LIMIT 1 BY part"
        )
        return {int(str(part)): str(database) for part, database in rows}

    async def add(self, digest: str, share: Share, database: str) -> bool:
        """Note that a part is loaded; return whether it is the one that counts."""
        values = f"{quote(digest)}, {share.part}, {share.parts}, {quote(database)}"
        await self._session.run(f"INSERT INTO {self._table} (hash, part, parts, database) VALUES ({values})")
        return (await self.find(digest, share.parts)).get(share.part) == database

    async def all_of(self, digest: str) -> list[str]:
        """Return the databases of all parts of a dataset, whatever became of them."""
        rows = await self._session.fetch(f"SELECT database FROM {self._table} WHERE hash = {quote(digest)}")
        return [str(database) for (database,) in rows]

    async def forget(self, digest: str) -> None:
        """Remove a dataset's rows, which its databases must not outlive."""
        await self._session.run(f"ALTER TABLE {self._table} DELETE WHERE hash = {quote(digest)}", {"mutations_sync": 2})


def take_parts(plan: SeedPlan, shards: Shards, staged: Mapping[int, str]) -> BringRows:
    """Return what takes over each server's share of the loaded parts: no row is copied, its files get another name."""

    async def take(number: int, session: SqlSession, database: str) -> None:
        for part, source in sorted(staged.items()):
            if shards.number_of(part) == number:
                for table in plan.tables:
                    taken = f"ATTACH PARTITION ALL FROM {name_table(source, table)}"
                    await session.run(f"ALTER TABLE {name_table(database, table)} {taken}")

    return take
