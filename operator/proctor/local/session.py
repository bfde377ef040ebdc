"""One `proctor run` from its request to its outcome: the parts of a run on one machine, put together and taken down."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from proctor.adapters.sandbox.availability import sandbox_available
from proctor.api.loading import digest_suite
from proctor.api.run import EvalRun
from proctor.api.suite import EvalSuiteSpec
from proctor.clock import utc_now
from proctor.errors import ProctorError, Terminal
from proctor.local.agents import Agents
from proctor.local.background import Background
from proctor.local.durable import check_room
from proctor.local.executor import Executor, PassReport
from proctor.local.gateway import Gateway
from proctor.local.grader import Grader
from proctor.local.journal import AttemptJournal
from proctor.local.kept_engine import KeptEngine
from proctor.local.launching import build_launcher
from proctor.local.locks import hold_data_dir, note_holder
from proctor.local.orders import RESULTS_DATABASE, Orders
from proctor.local.preflight import check_request
from proctor.local.request import RunRequest, SandboxChoice
from proctor.local.rundir import STORE_ANNOTATION, SUITE_DIGEST_ANNOTATION, RunDir, create_run, find_resumable
from proctor.local.secrets import read_secrets
from proctor.local.serving import DatasetHouse, EmbeddedHouse, RemoteHouse, RunDatasets, build_requests
from proctor.local.store_choice import check_same_store, check_store, name_store
from proctor.local.world import IsolationProof, World, to_fault
from proctor.reconcile.observed import FaultSeen, Observed, Readiness
from proctor.reconcile.run_cells import render_cells
from proctor.reconcile.snapshot import RunSnapshot

if TYPE_CHECKING:
    from proctor.local.remote import RemoteResults


class View(Protocol):
    """Whoever tells a person how the run goes on."""

    def say(self, line: str) -> None:
        """Tell one thing that stays."""
        ...

    def show(self, report: PassReport) -> None:
        """Tell what a pass saw."""
        ...


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What became of a run.

    Attributes:
        run: with its last status.
        suite: the frozen suite.
        cells: as in run.json.
        directory: where its files are.
        timed_out: the command's own time was up.
    """

    run: EvalRun
    suite: EvalSuiteSpec
    cells: tuple[dict[str, Any], ...]
    directory: RunDir
    timed_out: bool

    @property
    def document(self) -> dict[str, Any]:
        """The content of run.json."""
        return {"run": self.run.to_file(), "cells": list(self.cells)}


@dataclass(slots=True)
class StopRequest:
    """Why the command shall end before its run does.

    Attributes:
        asked: set once it shall.
        timed_out: its own time was up; else a person or the system asked.
    """

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    timed_out: bool = False

    def time_out(self) -> None:
        """Ask because the time is up."""
        self.timed_out = not self.asked.is_set()
        self.asked.set()


async def execute_run(request: RunRequest, view: View) -> RunOutcome | None:
    """Run a suite, or go on with its newest Pending run.

    Returns:
        What became of it; None if it was asked to stop before it began.

    Raises:
        InvalidInput: the suite can't be run here as it is.
        Terminal: this machine refuses; what was reached is kept.
    """
    check_request(request)
    secrets = read_secrets(request.suite.spec, request.secrets_dir)
    stop = StopRequest()
    with _stop_on_signals(stop), _stop_on_timeout(stop, request.timeout):
        name = request.suite.metadata.name
        async with hold_data_dir(request.data_dir, f"a run of {name}", _say_waiting(view), stop.asked) as is_held:
            if not is_held:
                return None
            check_room(request.data_dir)
            await check_store(request.clickhouse_url)
            directory, run = _find_or_create(request, view)
            note_holder(request.data_dir, directory.name)
            async with _open_session(request, directory, run, secrets) as session:
                try:
                    return await session.run(view, stop)
                except Terminal:
                    view.say(f"run {directory.name} stays Pending")
                    raise


def _say_waiting(view: View) -> Callable[[str], None]:
    return lambda holder: view.say(f"waiting for {holder} to finish on this data dir")


def _find_or_create(request: RunRequest, view: View) -> tuple[RunDir, EvalRun]:
    digest = digest_suite(request.suite.spec)
    store = name_store(request.clickhouse_url)
    found = None if request.new else find_resumable(request.runs_dir, digest)
    if found is not None:
        check_same_store(*found, store)
        view.say(f"resuming run {found[0].name}")
        return found
    now = utc_now()
    frozen = request.suite.spec.model_copy(update={"anchor": request.suite.spec.anchor_at(now), "anchor_policy": None})
    directory, run = create_run(
        request.runs_dir,
        suite_name=request.suite.metadata.name,
        suite=frozen,
        annotations={SUITE_DIGEST_ANNOTATION: digest, STORE_ANNOTATION: store},
        now=now,
    )
    view.say(f"run {directory.name}")
    return directory, run


@asynccontextmanager
async def _open_session(
    request: RunRequest, directory: RunDir, run: EvalRun, secrets: Mapping[str, str]
) -> AsyncIterator[_Session]:
    # Paths of Unix sockets have at most 107 bytes, so they can't be in the data dir.
    sockets_root = Path(tempfile.mkdtemp(prefix="proctor-"))
    with AttemptJournal(directory.journal, run.metadata.uid or "") as journal:
        session = _Session(request, directory, run, journal=journal, sockets_root=sockets_root, secrets=secrets)
        try:
            yield session
        finally:
            await session.close()
            shutil.rmtree(sockets_root, ignore_errors=True)


class _Session:
    """The parts of one run while its executor lives."""

    def __init__(
        self,
        request: RunRequest,
        directory: RunDir,
        run: EvalRun,
        *,
        journal: AttemptJournal,
        sockets_root: Path,
        secrets: Mapping[str, str],
    ) -> None:
        self._request = request
        self._directory = directory
        self._run = run
        self._suite = directory.read_suite()
        self._changed = asyncio.Event()
        self._background = Background(self._changed.set)
        self._cells: tuple[dict[str, Any], ...] = ()
        self._results, house = self._open_house()
        self._datasets = RunDatasets(build_requests(self._suite, request.scenario_dir), house, self._background)
        self._world = self._build_world(journal, sockets_root, secrets)

    async def run(self, view: View, stop: StopRequest) -> RunOutcome:
        """Drive the run until it is terminal or the command shall stop.

        Raises:
            Terminal: the run's files can't be written, or no results can be kept.
        """
        self._results.start()
        executor = Executor(
            world=self._world,
            sink=self,
            changed=self._changed,
            stop_asked=stop.asked,
            is_cancelled=self._directory.cancel_request.exists,
            check_room=partial(check_room, self._request.data_dir),
            report=view.show,
        )
        snapshot = await executor.drive(self._snapshot())
        if not snapshot.status.terminal:
            view.say("stopping: ending open cells")
            self.write(*await self._world.withdraw(snapshot))
        await self._store_run(view)
        return RunOutcome(self._run, self._suite, self._cells, self._directory, stop.timed_out)

    async def _store_run(self, view: View) -> None:
        """Put the run beside its trajectories; run.json stays what counts, so a failure is told and no more."""
        from proctor.adapters.clickhouse.results import ResultsStore, RunRow

        status = self._run.status
        row = RunRow(
            run=self._run.metadata.uid or "",
            name=self._directory.name,
            suite=self._run.spec.suite_ref.name,
            suite_digest=digest_suite(self._suite),
            created=status.started or utc_now(),
            verdict=status.verdict.value,
            payload=json.dumps(self._run.to_file(), ensure_ascii=False),
        )
        try:
            store = ResultsStore(await self._results.ready(), RESULTS_DATABASE)
            try:
                await store.migrate()
                await store.write_run(row)
            finally:
                await store.close()
        except ProctorError as error:
            view.say(f"the results store has no row of this run: {error}")

    def write(self, run: RunSnapshot, observed: Observed) -> None:
        """Keep the status of a pass in run.json.

        Raises:
            Terminal: it could not be written.
        """
        self._run = self._run.model_copy(update={"status": run.status})
        self._cells = render_cells(run, observed, self._read_marks())
        self._directory.write_run(self._run, self._cells)

    async def close(self) -> None:
        """End everything that was started, whatever happened before."""
        await self._world.release()
        await self._background.cancel()
        await self._results.close()
        shutil.rmtree(self._request.data_dir / "clones" / self._directory.name, ignore_errors=True)

    def _open_house(self) -> tuple[KeptEngine | RemoteResults, DatasetHouse]:
        request, notify = self._request, self._changed.set
        if request.clickhouse_url is not None:
            from proctor.local.remote import RemoteResults, parse_admin_url, parse_agent_url

            admin = parse_admin_url(request.clickhouse_url)
            agent = None if request.agent_url is None else parse_agent_url(request.agent_url)
            house = RemoteHouse(admin=admin, agent=agent, data_dir=request.data_dir, background=self._background)
            return RemoteResults(admin), house
        engine = KeptEngine(request.data_dir / "engines" / "results", log=self._directory.log("results"), notify=notify)
        return engine, EmbeddedHouse(
            data_dir=request.data_dir,
            clones_dir=request.data_dir / "clones" / self._directory.name,
            log_dir=self._directory.path / "logs",
            notify=notify,
        )

    def _snapshot(self) -> RunSnapshot:
        return RunSnapshot(
            name=self._directory.name,
            uid=self._run.metadata.uid or "",
            generation=self._run.metadata.generation or 1,
            suite=self._suite,
            suite_digest=digest_suite(self._suite),
            cancel=bool(self._run.spec.cancel),
            suspend=bool(self._run.spec.suspend),
            active_since=utc_now(),
            status=self._run.status,
        )

    def _build_world(self, journal: AttemptJournal, sockets_root: Path, secrets: Mapping[str, str]) -> World:
        orders = Orders(
            request=self._request,
            run=self._run.metadata.uid or "",
            suite=self._suite,
            directory=self._directory,
            results=self._results,
            datasets=self._datasets,
            secrets=secrets,
        )
        gateway = Gateway(
            orders.build_gateway,
            sockets_root=sockets_root,
            log=self._directory.log("gateway"),
            background=self._background,
        )
        grader = Grader(
            orders.build_grader,
            summary=self._directory.summary,
            log=self._directory.log("grader"),
            background=self._background,
        )
        agents = Agents(
            journal,
            gateway,
            build_launcher(self._suite, self._request, gateway.progress_of, log_of=self._directory.log),
            deadline_seconds=self._suite.agent.deadline_seconds,
            background=self._background,
        )
        return World(
            datasets=self._datasets,
            gateway=gateway,
            grader=grader,
            agents=agents,
            isolation=IsolationProof(
                lambda: sandbox_available() or "", waived=self._request.sandbox is SandboxChoice.NONE
            ),
            withdrawn=journal.read_started(),
            background=self._background,
            faults=self._find_faults,
        )

    def _find_faults(self) -> list[FaultSeen]:
        if self._results.state is Readiness.FAILED:
            return [to_fault(Terminal(f"the results engine is gone: {self._results.message}"))]
        return []

    def _read_marks(self) -> Mapping[str, Mapping[str, Any]]:
        try:
            grades = json.loads(self._directory.summary.read_bytes())["grades"]
        except (OSError, ValueError, KeyError):
            return {}
        return grades if isinstance(grades, dict) else {}


@contextmanager
def _stop_on_signals(stop: StopRequest) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stop.asked.set)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


@contextmanager
def _stop_on_timeout(stop: StopRequest, seconds: float | None) -> Iterator[None]:
    if seconds is None:
        yield
        return
    handle = asyncio.get_running_loop().call_later(seconds, stop.time_out)
    try:
        yield
    finally:
        handle.cancel()
