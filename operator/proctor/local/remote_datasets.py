"""Datasets in a ClickHouse by URL, as one machine uses it: two seedings of one data dir at once build once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.registry import DatasetRegistry, SeedOrder
from proctor.adapters.clickhouse.session import HttpSession
from proctor.adapters.clickhouse.shards import Shards
from proctor.core.seeding.record import DatasetRecord
from proctor.local.dataset_files import SeedRequest, datasets_dir
from proctor.local.datasets import compile_request, find_sheet
from proctor.local.staging import hold_name

if TYPE_CHECKING:
    from proctor.adapters.clickhouse.datasets import OnProgress
    from proctor.core.seeding.share import Share

PASSWORD_VARIABLE = "PROCTOR_CLICKHOUSE_PASSWORD"  # noqa: S105 - the variable's name, not a password


@dataclass(frozen=True)
class RemoteDatasets:
    """The datasets of a ClickHouse.

    Attributes:
        registry: the ClickHouse's.
        data_dir: whose locks keep two seedings on this machine apart.
    """

    registry: DatasetRegistry
    data_dir: Path

    async def find(self, request: SeedRequest) -> DatasetRecord | None:
        """Return a dataset's record if it is there with the facts that are asked for."""
        await self.registry.prepare()
        record = await self.registry.find(request.hash)
        return record if record is not None and request.is_met_by(record) else None

    async def ensure(self, request: SeedRequest, on_progress: OnProgress | None = None) -> DatasetRecord:
        """Return a dataset's record, building the dataset or computing its facts if they are missing."""
        async with hold_name(datasets_dir(self.data_dir), request.hash):
            return await self.registry.ensure(await _order(request), on_progress)

    async def ensure_part(
        self, request: SeedRequest, share: Share, on_progress: OnProgress | None = None
    ) -> DatasetRecord | None:
        """Load one of several parts; return the dataset's record, or None if another worker makes the dataset."""
        return await self.registry.ensure_part(await _order(request), share, on_progress)

    async def records(self) -> tuple[DatasetRecord, ...]:
        """Return the records of all committed datasets."""
        await self.registry.prepare()
        return await self.registry.all()

    async def verify(self, record: DatasetRecord, *, threads: int = 2) -> list[str]:
        """Return what differs from a record."""
        return await self.registry.verify(record, threads=threads)

    async def remove(self, digest: str) -> None:
        """Remove a dataset."""
        await self.registry.remove(digest)


async def _order(request: SeedRequest) -> SeedOrder:
    plan, sheet = await asyncio.gather(
        asyncio.to_thread(compile_request, request), asyncio.to_thread(find_sheet, request)
    )
    return SeedOrder(request.hash, request.scenario.name, plan, sheet, request.threads)


@asynccontextmanager
async def open_remote_datasets(
    urls: Sequence[str], data_dir: Path, *, cluster: str = ""
) -> AsyncIterator[RemoteDatasets]:
    """Use the datasets of a ClickHouse; a password in the environment wins over those in URLs.

    Args:
        urls: of each shard; the first has the registry.
        data_dir: whose locks keep two seedings on this machine apart.
        cluster: what several servers call themselves in `remote_servers`.

    Raises:
        InvalidInput: a URL can't be read, or several servers have no name.
    """
    endpoints = [Endpoint.parse(url) for url in urls]
    password = os.environ.get(PASSWORD_VARIABLE)
    if password is not None:
        endpoints = [replace(endpoint, password=password) for endpoint in endpoints]
    shards = Shards([HttpSession(endpoint) for endpoint in endpoints], cluster)
    yield RemoteDatasets(DatasetRegistry(shards, endpoints[0].database), data_dir)
