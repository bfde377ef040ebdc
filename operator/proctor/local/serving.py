"""The datasets of one run: seeded where they are missing, and served to servers under test from clones of their own."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.api.suite import EvalSuiteSpec
from proctor.clock import utc_now
from proctor.core.seeding.record import DatasetRecord
from proctor.errors import DiskFull, InvalidInput, Retryable, Terminal
from proctor.local.background import Background
from proctor.local.dataset_files import SeedRequest, engine_dir, find_dataset
from proctor.local.datasets import ensure_dataset
from proctor.local.engine import Access, clone_dataset
from proctor.local.kept_engine import KeptEngine
from proctor.reconcile.observed import DatasetSeen, Readiness

if TYPE_CHECKING:
    from proctor.adapters.clickhouse.datasets import OnProgress, Progress

_MAX_THREADS = 8
_MAX_SEEDINGS = 3
"""An engine that dies while it is filled is tried again: what it had is thrown away, so nothing is doubled."""


class ServedDataset(Protocol):
    """One dataset as servers under test reach it."""

    @property
    def state(self) -> Readiness:
        """READY once it can be queried."""
        ...

    @property
    def message(self) -> str:
        """What is wrong."""
        ...

    @property
    def agent_endpoint(self) -> Endpoint:
        """Where it is, as its restricted user."""
        ...

    def start(self) -> None:
        """Begin to serve it."""
        ...

    async def close(self) -> None:
        """Stop."""
        ...


class DatasetHouse(Protocol):
    """Where datasets are kept and served."""

    def find(self, request: SeedRequest) -> DatasetRecord | None:
        """Return a dataset's record if that can be told at once.

        Raises:
            Terminal: what is there is damaged.
        """
        ...

    async def ensure(self, request: SeedRequest, on_progress: OnProgress | None = None) -> DatasetRecord:
        """Return a dataset's record, building what is missing."""
        ...

    def serve(self, record: DatasetRecord) -> ServedDataset:
        """Return what serves a dataset; not yet started.

        Raises:
            Terminal: it can't be served.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedHouse:
    """Datasets of the data dir, each served from a clone by an engine of its own.

    Attributes:
        clones_dir: of this run alone.
        log_dir: takes the engines' logs.
        notify: called when an engine came up or went down.
    """

    data_dir: Path
    clones_dir: Path
    log_dir: Path
    notify: Callable[[], None]

    def find(self, request: SeedRequest) -> DatasetRecord | None:
        """As `find_dataset`."""
        return find_dataset(request, data_dir=self.data_dir)

    async def ensure(self, request: SeedRequest, on_progress: OnProgress | None = None) -> DatasetRecord:
        """As `ensure_dataset`."""
        return await ensure_dataset(request, data_dir=self.data_dir, on_progress=on_progress)

    def serve(self, record: DatasetRecord) -> ServedDataset:
        """Clone it, and return its engine."""
        clone = self.clones_dir / record.hash
        # A clone of an executor that was killed holds nothing that the dataset doesn't.
        shutil.rmtree(clone, ignore_errors=True)
        clone_dataset(engine_dir(self.data_dir, record.hash), clone)
        return KeptEngine(
            clone,
            log=self.log_dir / f"dataset-{record.hash}.log",
            notify=self.notify,
            access=Access(agent_database=record.database),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteHouse:
    """Datasets of a ClickHouse that somebody else runs.

    Attributes:
        admin: a user that may create databases, and users unless `agent` is given.
        agent: a user that reads the datasets; None to make one per dataset.
        data_dir: whose locks keep two seedings apart.
    """

    admin: Endpoint
    agent: Endpoint | None
    data_dir: Path
    background: Background

    def find(self, request: SeedRequest) -> DatasetRecord | None:
        """Return None: a look costs a round trip, which `ensure` makes anyway."""
        del request
        return None

    async def ensure(self, request: SeedRequest, on_progress: OnProgress | None = None) -> DatasetRecord:
        """Return a dataset's record, building what is missing."""
        # The registry brings recipes along, which a run on seeded data never reads.
        from proctor.adapters.clickhouse.registry import DatasetRegistry
        from proctor.adapters.clickhouse.session import HttpSession
        from proctor.adapters.clickhouse.shards import Shards
        from proctor.local.remote_datasets import RemoteDatasets

        registry = DatasetRegistry(Shards([HttpSession(self.admin)]), self.admin.database)
        return await RemoteDatasets(registry, self.data_dir).ensure(request, on_progress)

    def serve(self, record: DatasetRecord) -> ServedDataset:
        """Return a user that reads it alone."""
        from proctor.local.remote import RemoteAccess

        return RemoteAccess(self.admin, record, self.background, given=self.agent)


@dataclass(slots=True)
class _Dataset:
    request: SeedRequest
    prepared: Readiness = Readiness.ABSENT
    record: DatasetRecord | None = None
    share: float = 0.0
    message: str = ""


class RunDatasets:
    """Keeps a run's datasets and what serves them.

    Args:
        requests: what each scenario needs.
        house: where datasets are kept and served.
        background: runs what goes on beside the passes.
    """

    def __init__(self, requests: Mapping[str, SeedRequest], house: DatasetHouse, background: Background) -> None:
        self._datasets = {name: _Dataset(request) for name, request in requests.items()}
        self._house = house
        self._background = background
        self._served: dict[str, ServedDataset] = {}
        self.faults: list[Terminal] = []
        for dataset in self._datasets.values():
            self._look_up(dataset)

    def observe(self) -> Mapping[str, DatasetSeen]:
        """Return what each is like now."""
        return {
            name: self._see(dataset)
            for name, dataset in self._datasets.items()
            if dataset.prepared is not Readiness.ABSENT
        }

    def progress(self) -> Mapping[str, float]:
        """Return the share of each that is seeded."""
        return {
            name: 1.0 if dataset.prepared is Readiness.READY else dataset.share
            for name, dataset in self._datasets.items()
        }

    def prepare(self, scenario: str) -> None:
        """Begin to seed one, unless that was begun."""
        dataset = self._datasets[scenario]
        if dataset.prepared is Readiness.ABSENT:
            dataset.prepared = Readiness.STARTING
            self._background.spawn(self._seed(dataset))

    def serve(self, scenario: str) -> None:
        """Begin to serve one, unless that was begun."""
        record = self.record_of(scenario)
        if record.hash not in self._served:
            self._served[record.hash] = self._house.serve(record)
            self._served[record.hash].start()

    def record_of(self, scenario: str) -> DatasetRecord:
        """Return the record of a committed dataset.

        Raises:
            Terminal: it is not committed.
        """
        record = self._datasets[scenario].record
        if record is None:
            raise Terminal(f"dataset of scenario {scenario}: it is not seeded")
        return record

    def answer_source(self, scenario: str) -> str | None:
        """Return the digest of the scenario's answer key's file, by which a record names its facts."""
        return self._datasets[scenario].request.answer_source()

    def endpoint_of(self, scenario: str) -> Endpoint:
        """Return where servers under test find a dataset, as its restricted user.

        Raises:
            Terminal: it is not served.
        """
        served = self._served.get(self.record_of(scenario).hash)
        if served is None:
            raise Terminal(f"dataset of scenario {scenario}: it is not served")
        return served.agent_endpoint

    async def close(self) -> None:
        """Stop what serves them."""
        await asyncio.gather(*(served.close() for served in self._served.values()))
        self._served.clear()

    def _see(self, dataset: _Dataset) -> DatasetSeen:
        if dataset.record is None:
            return DatasetSeen(prepared=dataset.prepared, message=dataset.message)
        served = self._served.get(dataset.record.hash)
        return DatasetSeen(
            prepared=Readiness.READY,
            served=Readiness.ABSENT if served is None else served.state,
            digest=dataset.record.digest,
            message="" if served is None else served.message,
        )

    def _look_up(self, dataset: _Dataset) -> None:
        try:
            record = self._house.find(dataset.request)
        except Terminal as error:
            dataset.prepared, dataset.message = Readiness.FAILED, str(error)
            return
        if record is not None:
            dataset.prepared, dataset.record = Readiness.READY, record

    async def _seed(self, dataset: _Dataset) -> None:
        def note(progress: Progress) -> None:
            dataset.share = progress.rows / progress.total if progress.total else 0.0
            self._background.notify()

        for attempt in range(1, _MAX_SEEDINGS + 1):
            try:
                dataset.record = await self._house.ensure(dataset.request, note)
            except (InvalidInput, Terminal, Retryable) as error:
                dataset.message = str(error)
                if isinstance(error, DiskFull):
                    self.faults.append(error)
                    return
                # An engine that is killed while it starts is as accidental as one that is killed later.
                if isinstance(error, InvalidInput) or attempt == _MAX_SEEDINGS:
                    dataset.prepared = Readiness.FAILED
                    return
                await asyncio.sleep(error.delay if isinstance(error, Retryable) else 0)
            else:
                dataset.prepared = Readiness.READY
                return


def build_requests(suite: EvalSuiteSpec, scenario_dir: Callable[[str], Path]) -> dict[str, SeedRequest]:
    """Return what has to be seeded for each scenario of a frozen suite.

    Raises:
        InvalidInput: a scenario's folder is missing.
    """
    return {
        scenario.name: SeedRequest(
            scenario=scenario_dir(scenario.name),
            seed=scenario.seed,
            anchor=suite.anchor_at(utc_now()),
            volume=scenario.volume,
            threads=min(os.cpu_count() or 1, _MAX_THREADS),
        )
        for scenario in suite.scenarios
    }
