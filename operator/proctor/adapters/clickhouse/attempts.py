"""Attempts at building datasets: each shows that it lives, so that what a dead one left can be told and dropped."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from proctor.adapters.clickhouse.session import SqlSession
from proctor.core.seeding.sql import name_table, quote
from proctor.errors import ProctorError

_BEAT_SECONDS = 5.0
_DEAD_SECONDS = 60
"""An attempt without a beat for so long is dead; a busy server may delay several."""


class AttemptLog:
    """Which attempts there were, by the names of their databases, and when each last gave a sign of life.

    Args:
        session: the server that has the table.
        database: where it is.
    """

    def __init__(self, session: SqlSession, database: str) -> None:
        self._session = session
        self._table = name_table(database, "dataset_attempts")

    async def prepare(self) -> None:
        """Create the table if it is missing."""
        await self._session.run(
            f"CREATE TABLE IF NOT EXISTS {self._table} (database String,"
            " beat DateTime64(3, 'UTC') DEFAULT now64(3)) ENGINE = ReplacingMergeTree(beat) ORDER BY database"
        )

    async def dead(self, *kept: str) -> set[str]:
        """Return the databases of attempts that live no more.

        Args:
            kept: queries for the databases that outlive their attempts.
        """
        others = " AND ".join(f"database NOT IN ({query})" for query in kept)
        rows = await self._session.fetch(
            f"SELECT database FROM {self._table} WHERE {others}"
            f" GROUP BY database HAVING max(beat) < now64(3) - INTERVAL {_DEAD_SECONDS} SECOND"
        )
        return {str(name) for (name,) in rows}

    @asynccontextmanager
    async def beating(self, database: str) -> AsyncIterator[None]:
        """Show that an attempt lives, from before its database exists."""

        async def beat() -> None:
            await self._session.run(f"INSERT INTO {self._table} (database) VALUES ({quote(database)})")

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
