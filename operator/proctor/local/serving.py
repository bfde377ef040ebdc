"""The datasets of one run: seeded where they are missing, and served to servers under test from clones of their own."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.api.suite import EvalSuiteSpec
from proctor.clock import utc_now
from proctor.core.seeding.record import DatasetRecord
from proctor.errors import InvalidInput, Retryable, Terminal
from proctor.local.background import Background
from proctor.local.datasets import SeedRequest, engine_dir, ensure_dataset, find_dataset
from proctor.local.engine import Access, clone_dataset
from proctor.local.kept_engine import KeptEngine
from proctor.reconcile.observed import DatasetSeen, Readiness

if TYPE_CHECKING:
    from proctor.adapters.clickhouse.datasets import Progress

_MAX_THREADS = 8
_MAX_SEEDINGS = 3
"""An engine that dies while it is filled is tried again: what it had is thrown away, so nothing is doubled."""


@dataclass(slots=True)
class _Dataset:
    request: SeedRequest
    prepared: Readiness = Readiness.ABSENT
    record: DatasetRecord | None = None
    share: float = 0.0
    message: str = ""


class LocalDatasets:
    """Keeps a run's datasets and the engines that serve them.

    Args:
        requests: what each scenario needs.
        data_dir: where datasets are.
        clones_dir: where the run's clones are; of this run alone, emptied first.
        log_dir: takes the engines' logs.
        background: runs what goes on beside the passes.
    """

    def __init__(
        self,
        requests: Mapping[str, SeedRequest],
        *,
        data_dir: Path,
        clones_dir: Path,
        log_dir: Path,
        background: Background,
    ) -> None:
        self._datasets = {name: _Dataset(request) for name, request in requests.items()}
        self._data_dir = data_dir
        self._clones_dir = clones_dir
        self._log_dir = log_dir
        self._background = background
        self._engines: dict[str, KeptEngine] = {}
        self.faults: list[Terminal] = []
        # Clones of an executor that was killed hold nothing that the dataset doesn't.
        shutil.rmtree(clones_dir, ignore_errors=True)
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
        """Begin to serve one from a clone, unless that was begun."""
        record = self.record_of(scenario)
        if record.hash in self._engines:
            return
        clone = self._clones_dir / record.hash
        clone_dataset(engine_dir(self._data_dir, record.hash), clone)
        self._engines[record.hash] = KeptEngine(
            clone,
            log=self._log_dir / f"dataset-{record.hash}.log",
            notify=self._background.notify,
            access=Access(agent_database=record.database),
        )
        self._engines[record.hash].start()

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
        engine = self._engines.get(self.record_of(scenario).hash)
        if engine is None:
            raise Terminal(f"dataset of scenario {scenario}: it is not served")
        return engine.agent_endpoint

    async def close(self) -> None:
        """Stop the engines and drop the clones."""
        await asyncio.gather(*(engine.close() for engine in self._engines.values()))
        self._engines.clear()
        shutil.rmtree(self._clones_dir, ignore_errors=True)

    def _see(self, dataset: _Dataset) -> DatasetSeen:
        if dataset.record is None:
            return DatasetSeen(prepared=dataset.prepared, message=dataset.message)
        engine = self._engines.get(dataset.record.hash)
        return DatasetSeen(
            prepared=Readiness.READY,
            served=Readiness.ABSENT if engine is None else engine.state,
            digest=dataset.record.digest,
            message="" if engine is None else engine.message,
        )

    def _look_up(self, dataset: _Dataset) -> None:
        try:
            record = find_dataset(dataset.request, data_dir=self._data_dir)
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
                dataset.record = await ensure_dataset(dataset.request, data_dir=self._data_dir, on_progress=note)
            except (InvalidInput, Terminal, Retryable) as error:
                dataset.message = str(error)
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
