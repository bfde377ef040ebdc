"""The results store: trajectories, bodies, attempts, grades and runs, in any ClickHouse.

Writes are idempotent: whatever is written again shows up once, so that a writer that doesn't know whether its last
batch arrived just repeats it. Readers are complete and ordered.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from proctor.adapters.clickhouse import results_rows as rows
from proctor.adapters.clickhouse.answers import ClickHouseError
from proctor.adapters.clickhouse.client import Client, open_client
from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.results_rows import GradeRow, RecordBatch, RunRow, Table
from proctor.adapters.clickhouse.rowjson import Parameters, Row
from proctor.adapters.clickhouse.schema import Migration, load_migrations
from proctor.clock import format_instant
from proctor.core.ids import AttemptKey
from proctor.core.trajectory.events import Event
from proctor.core.trajectory.outcome import AttemptRecord
from proctor.errors import Terminal

__all__ = ["DEFAULT_DATABASE", "GradeRow", "RecordBatch", "ResultsStore", "RunRow"]

DEFAULT_DATABASE = "proctor"

_UNKNOWN_TABLE, _UNKNOWN_DATABASE = 60, 81  # codes of ClickHouse
_BLOBS_PER_QUERY = 64
_REQUEST_SECONDS = 60
_SETTINGS = {"async_insert": 0}  # an acknowledgement must mean stored
_INSERT_BYTES = 32 << 20
_MIGRATIONS_TABLE = """CREATE TABLE IF NOT EXISTS schema_migrations
(version UInt32, name String, checksum String, applied DateTime64(6, 'UTC'))
ENGINE = ReplacingMergeTree ORDER BY version"""


class ResultsStore:
    """One database of results; connects when first used, and again when the connection was lost.

    Args:
        endpoint: where ClickHouse is; its own default database doesn't matter.
        database: the database with the tables.

    Every method raises `Retryable` while ClickHouse is away or busy, and `Terminal` if it refuses.
    """

    def __init__(self, endpoint: Endpoint, database: str = DEFAULT_DATABASE) -> None:
        self._endpoint = replace(endpoint, database=database)
        self._database = database
        self._client: Client | None = None

    async def migrate(self) -> None:
        """Bring the schema to this version of Proctor's; does nothing where it is already there.

        Raises:
            Terminal: the schema is newer than this version, or a migration was changed after it was applied.
        """
        client = self._connected()
        try:
            applied = await self._applied(client)
        except ClickHouseError as error:
            if error.code != _UNKNOWN_DATABASE:
                raise
            await self._create_database()
            applied = await self._applied(client)
        known = load_migrations()
        self._refuse_unknown(known, applied)
        for migration in known:
            if migration.version not in applied:
                await self._apply(client, migration)

    async def write(self, batch: RecordBatch) -> None:
        """Store a batch; returns once all of it is stored. Repeating it changes nothing.

        An attempt's row comes last, so that whoever sees it finds its events and bodies.

        Raises:
            InvalidInput: a value that the store can't hold; nothing of the batch was written.
        """
        version = _now()
        events = [rows.build_event_row(key, event) for key, event in batch.events]
        attempts = [rows.build_attempt_row(record) for record in batch.attempts]
        blobs: list[Row] = []
        size = 0
        for digest, body in batch.blobs.items():
            blobs.append(rows.build_blob_row(digest, body, version=version))
            size += len(body)
            if size >= _INSERT_BYTES:
                await self._insert(rows.BLOBS, blobs)
                blobs, size = [], 0
        await self._insert(rows.BLOBS, blobs)
        await self._insert(rows.EVENTS, events)
        await self._insert(rows.ATTEMPTS, attempts)

    async def attempts(self, run: str, *, since: datetime | None = None) -> tuple[AttemptRecord, ...]:
        """Return a run's ended attempts, by cell and attempt; with an instant, those that ended then or later."""
        condition, parameters = "run = {run:String}", {"run": run}
        if since is not None:
            condition += " AND ended >= parseDateTime64BestEffort({since:String}, 6, 'UTC')"
            parameters["since"] = format_instant(since)
        found = await self._select(rows.ATTEMPTS, condition, "scenario, server, model, replicate, attempt", parameters)
        return tuple(rows.parse_attempt(row) for row in found)

    async def begun(self, run: str) -> tuple[AttemptKey, ...]:
        """Return every attempt of a run that anything was recorded of, whether it ended or not."""
        key = ", ".join(name for name, _ in rows.KEY_COLUMNS)
        sql = f"SELECT DISTINCT {key} FROM events WHERE run = {{run:String}} ORDER BY {key}"  # noqa: S608 - all constants
        return tuple(rows.parse_key(row) for row in await self._connected().rows(sql, {"run": run}))

    async def events(self, key: AttemptKey) -> tuple[Event, ...]:
        """Return an attempt's trajectory, in order."""
        condition = " AND ".join(f"{name} = {{{name}:{kind}}}" for name, kind in rows.KEY_COLUMNS)
        found = await self._select(rows.EVENTS, condition, "seq", key.columns)
        return tuple(rows.parse_event(row) for row in found)

    async def blobs(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Return the bodies that are there, by digest; those that were never kept, or aged out, are missing.

        Raises:
            Terminal: a body that doesn't have the digest it is stored under.
        """
        wanted = sorted({digest for digest in digests if rows.DIGEST.fullmatch(digest)})
        bodies: dict[str, bytes] = {}
        for start in range(0, len(wanted), _BLOBS_PER_QUERY):
            found = await self._connected().rows(rows.select_bodies(wanted[start : start + _BLOBS_PER_QUERY]))
            bodies.update(rows.parse_body(row, f"results {self._endpoint}") for row in found)
        return bodies

    async def write_grades(self, grades: Sequence[GradeRow]) -> None:
        """Store grades; a later one of the same attempt, rubric and judge takes the earlier one's place."""
        version = _now()
        await self._insert(rows.GRADES, [rows.build_grade_row(grade, version=version) for grade in grades])

    async def grades(self, run: str) -> tuple[GradeRow, ...]:
        """Return a run's grades, by cell, attempt, rubric and judge."""
        order = "scenario, server, model, replicate, attempt, rubric_digest, judge_model, judge_prompt_digest"
        found = await self._select(rows.GRADES, "run = {run:String}", order, {"run": run})
        return tuple(rows.parse_grade(row) for row in found)

    async def write_run(self, run: RunRow) -> None:
        """Store a run as it now is."""
        await self._insert(rows.RUNS, [rows.build_run_row(run, version=_now())])

    async def runs(self) -> tuple[RunRow, ...]:
        """Return every run as last written, oldest first."""
        return tuple(rows.parse_run(row) for row in await self._select(rows.RUNS, "1", "created, run", {}))

    async def close(self) -> None:
        """Close every connection; the next call opens one again."""
        client, self._client = self._client, None
        if client:
            await client.close()

    def _connected(self) -> Client:
        if self._client is None:
            self._client = Client(self._endpoint, settings=_SETTINGS, timeout_seconds=_REQUEST_SECONDS)
        return self._client

    async def _create_database(self) -> None:
        async with open_client(replace(self._endpoint, database=""), timeout_seconds=_REQUEST_SECONDS) as client:
            await client.execute(f"CREATE DATABASE IF NOT EXISTS `{_checked_name(self._database)}`")

    async def _applied(self, client: Client) -> dict[int, tuple[str, str]]:
        """Return what was applied; asks before it creates: an up-to-date schema needs no right to DDL."""
        query = "SELECT version, name, checksum FROM schema_migrations FINAL ORDER BY version"
        try:
            found = await client.rows(query)
        except ClickHouseError as error:
            if error.code != _UNKNOWN_TABLE:
                raise
            await client.execute(_MIGRATIONS_TABLE)
            found = await client.rows(query)
        return {version: (name, checksum) for version, name, checksum in found}

    async def _apply(self, client: Client, migration: Migration) -> None:
        for statement in migration.statements:
            await client.execute(statement)
        await client.execute(
            "INSERT INTO schema_migrations SELECT {version:UInt32}, {name:String}, {checksum:String}, now64(6, 'UTC')",
            {"version": migration.version, "name": migration.name, "checksum": migration.checksum},
        )

    def _refuse_unknown(self, known: Sequence[Migration], applied: dict[int, tuple[str, str]]) -> None:
        newest = max(applied, default=0)
        if newest > len(known):
            raise Terminal(
                f"results {self._endpoint}: its schema is version {newest}, this Proctor knows {len(known)}: "
                "upgrade Proctor, or point it at another database"
            )
        for migration in known:
            if migration.version in applied and applied[migration.version][1] != migration.checksum:
                raise Terminal(
                    f"results {self._endpoint}: migration {migration.name} is not the one that was applied there: "
                    "this build of Proctor and the database don't belong together"
                )

    async def _insert(self, table: Table, values: Sequence[Row]) -> None:
        await self._connected().insert(table.name, values, columns=table.column_names, types=table.column_types)

    async def _select(self, table: Table, condition: str, order: str, parameters: Parameters) -> list[Row]:
        sql = f"SELECT {table.selected} FROM {table.name} FINAL WHERE {condition} ORDER BY {order}"  # noqa: S608 - all constants
        return await self._connected().rows(sql, parameters)


def _checked_name(database: str) -> str:
    if not database or "`" in database or "\\" in database:
        raise Terminal(f"results database {database!r}: not a name that can be created")
    return database


def _now() -> int:
    """Return a version for rows that may be rewritten: microseconds, so that the later write wins."""
    return time.time_ns() // 1000
