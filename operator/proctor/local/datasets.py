"""Datasets on one machine: built, verified and removed. What is there is found by `dataset_files`."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from proctor.core.seeding.facts import FactSheet, FactValue
from proctor.core.seeding.identity import GENERATOR_VERSION
from proctor.core.seeding.record import ROLLUP_SUFFIX, DatasetRecord, TableRecord
from proctor.errors import InvalidInput
from proctor.local.dataset_files import (
    ENGINE,
    RECORD,
    SeedRequest,
    datasets_dir,
    find_dataset,
    list_datasets,
    read_record,
    refuse_mismatch,
)
from proctor.local.durable import check_room, write_atomic
from proctor.local.staging import commit_folder, create_root, discard_folder, hold_name, stage_folder, sweep_staging

if TYPE_CHECKING:
    from proctor.adapters.clickhouse.datasets import OnProgress
    from proctor.adapters.clickhouse.session import HttpSession
    from proctor.core.seeding.plan import SeedPlan

ShortT = TypeVar("ShortT")
LongT = TypeVar("LongT")

_LOGS = "logs"
_SERVING = "engine.serving"
"""What serving an engine's folder leaves beside it."""


class DatasetStore(Protocol):
    """Where datasets are: in the embedded engine, or in a ClickHouse of one's own."""

    async def find(self, request: SeedRequest) -> DatasetRecord | None:
        """Return a dataset's record if it is there with the facts that are asked for."""
        ...

    async def ensure(self, request: SeedRequest, on_progress: OnProgress | None = None) -> DatasetRecord:
        """Return a dataset's record, building the dataset or computing its facts if they are missing."""
        ...

    async def records(self) -> tuple[DatasetRecord, ...]:
        """Return the records of all committed datasets."""
        ...

    async def verify(self, record: DatasetRecord, *, threads: int = 2) -> list[str]:
        """Return what differs from a record."""
        ...

    async def remove(self, digest: str) -> None:
        """Remove a dataset."""
        ...


@dataclass(frozen=True)
class EmbeddedDatasets:
    """The datasets of a data dir.

    Attributes:
        data_dir: the data dir.
    """

    data_dir: Path

    async def find(self, request: SeedRequest) -> DatasetRecord | None:
        """As `find_dataset`."""
        return find_dataset(request, data_dir=self.data_dir)

    async def ensure(self, request: SeedRequest, on_progress: OnProgress | None = None) -> DatasetRecord:
        """As `ensure_dataset`."""
        return await ensure_dataset(request, data_dir=self.data_dir, on_progress=on_progress)

    async def records(self) -> tuple[DatasetRecord, ...]:
        """As `list_datasets`."""
        return list_datasets(self.data_dir)

    async def verify(self, record: DatasetRecord, *, threads: int = 2) -> list[str]:
        """As `verify_dataset`."""
        return await verify_dataset(record, self.data_dir, threads=threads)

    async def remove(self, digest: str) -> None:
        """As `remove_dataset`."""
        await remove_dataset(self.data_dir, digest)


async def remove_dataset(data_dir: Path, digest: str) -> None:
    """Remove a dataset; what serves a clone of it goes on.

    Raises:
        InvalidInput: there is none.
        Terminal: it can't be removed.
    """
    folder = datasets_dir(data_dir) / digest
    async with hold_name(datasets_dir(data_dir), digest):
        if not folder.is_dir():
            raise InvalidInput(f"dataset {digest}: there is none of that hash")
        discard_folder(folder)


async def ensure_dataset(
    request: SeedRequest, *, data_dir: Path, on_progress: OnProgress | None = None
) -> DatasetRecord:
    """Return a dataset's record, building the dataset or computing its facts if they are missing.

    Raises:
        InvalidInput: the recipe or a fact query is at fault.
        Retryable: the engine went away.
        DiskFull: there is too little room.
        Terminal: it can't be built here, or what is there is not what its name says.
    """
    found = find_dataset(request, data_dir=data_dir)
    if found is not None:
        return found
    root = datasets_dir(data_dir)
    create_root(root)
    sweep_staging(root)
    async with hold_name(root, request.hash):
        record = read_record(root / request.hash)
        if record is None:
            check_room(data_dir)
            return await _build(request, root, on_progress)
        refuse_mismatch(record, request)
        return record if request.is_met_by(record) else await _add_facts(record, request, root)


async def verify_dataset(record: DatasetRecord, data_dir: Path, *, threads: int = 2) -> list[str]:
    """Compute a dataset's digests anew and return what differs from its record; nothing if all is well."""
    from proctor.adapters.clickhouse.datasets import digest_database

    tables = tuple(name for name in record.tables if not name.endswith(ROLLUP_SUFFIX))
    async with _read_clone(record, datasets_dir(data_dir)) as session:
        found = await digest_database(session, tables, record.database, threads=threads)
    return record.differences(found)


async def _build(request: SeedRequest, root: Path, on_progress: OnProgress | None) -> DatasetRecord:
    from proctor.adapters.clickhouse.datasets import compute_facts, create_database, fill_database

    began = time.monotonic()
    database = f"ds_{request.hash}_1"
    # Reading a recipe and starting an engine take half a second each: side by side.
    reading = asyncio.create_task(asyncio.to_thread(compile_request, request))
    with stage_folder(root, request.hash) as staging:
        try:
            async with _serve(staging) as session:
                plan, _ = await _beside(reading, create_database(session, database))
                building = fill_database(session, plan, database, threads=request.threads, on_progress=on_progress)
                sheet, digests = await _beside(asyncio.to_thread(find_sheet, request), building)
                facts = await compute_facts(session, sheet.queries, database) if sheet else {}
        finally:
            reading.cancel()
        record = DatasetRecord(
            hash=request.hash,
            database=database,
            generator=GENERATOR_VERSION,
            recipe=plan.recipe.digest,
            label=request.scenario.name,
            seed=request.seed,
            anchor=request.anchor,
            volume=request.volume,
            tables={name: TableRecord(rows=one.rows, digest=one.digest) for name, one in digests.items()},
            facts={sheet.digest: facts} if sheet else {},
            sheets={sheet.source: sheet.digest} if sheet else {},
            seconds=round(time.monotonic() - began, 3),
        )
        for left_over in (_LOGS, _SERVING):
            shutil.rmtree(staging / left_over, ignore_errors=True)
        write_atomic(staging / RECORD, record.model_dump_json(indent=1).encode())
        commit_folder(staging, root / request.hash)
    return record


async def _beside(short: Awaitable[ShortT], long: Coroutine[None, None, LongT]) -> tuple[ShortT, LongT]:
    """Await both at once; if the short one fails, the long one is ended."""
    task = asyncio.create_task(long)
    try:
        return await short, await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def compile_request(request: SeedRequest) -> SeedPlan:
    """Read and compile the recipe.

    Raises:
        InvalidInput: it is at fault.
    """
    from proctor.core.scenarios.recipe import load_recipe
    from proctor.core.seeding.plan import compile_plan

    recipe = load_recipe(request.scenario, request.seed)
    return compile_plan(recipe, seed=request.seed, anchor=request.anchor, volume=request.volume)


async def _add_facts(record: DatasetRecord, request: SeedRequest, root: Path) -> DatasetRecord:
    from proctor.adapters.clickhouse.datasets import compute_facts

    sheet = find_sheet(request)
    if sheet is None:
        return record
    facts: Mapping[str, FactValue] | None = record.facts.get(sheet.digest)
    if facts is None:
        async with _read_clone(record, root) as session:
            facts = await compute_facts(session, sheet.queries, record.database)
    grown = record.with_facts(sheet, facts)
    write_atomic(root / record.hash / RECORD, grown.model_dump_json(indent=1).encode())
    return grown


def find_sheet(request: SeedRequest) -> FactSheet | None:
    """Read the fact queries of the scenario's answer key; None if they aren't asked for or there is no key.

    Raises:
        InvalidInput: the key is at fault.
    """
    if not request.with_facts:
        return None
    from proctor.core.scenarios.answer import read_sheet

    return read_sheet(request.scenario, request.seed)


@asynccontextmanager
async def _read_clone(record: DatasetRecord, root: Path) -> AsyncIterator[HttpSession]:
    """Serve a throw-away clone of a dataset: an engine writes to what it opens, and the dataset stays as it is."""
    from proctor.local.engine import clone_dataset

    with stage_folder(root, record.hash) as staging:
        clone_dataset(root / record.hash / ENGINE, staging / ENGINE)
        async with _serve(staging) as session:
            yield session


@asynccontextmanager
async def _serve(staging: Path) -> AsyncIterator[HttpSession]:
    from proctor.adapters.clickhouse.session import HttpSession
    from proctor.local.engine import ADMIN_ONLY, Engine

    async with Engine.start(staging / ENGINE, access=ADMIN_ONLY, log=staging / _LOGS / "engine.log") as engine:
        yield HttpSession(engine.endpoint)
        # Nothing is merged here and nobody waits for an answer: its orderly end would only take its time.
        engine.kill()
