"""Passes over one run until it is terminal: look, decide, write, act, wait for something to happen."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Protocol

from proctor.api.run import EvalRunStatus
from proctor.clock import Clock, utc_now
from proctor.errors import Retryable, Terminal
from proctor.local.world import DISK_FULL, World
from proctor.reconcile.decide import decide
from proctor.reconcile.ending import next_deadline
from proctor.reconcile.observed import Observed
from proctor.reconcile.plan import Action, Plan
from proctor.reconcile.snapshot import RunSnapshot

_HEARTBEAT_SECONDS = 1.0
"""A pass at least this often: deadlines, a request to cancel, and figures for people come without an event."""

_WRITE_SECONDS = 1.0
"""Counts of cells are written at most this often; what matters for resuming is written at once."""

_REST = 10
_LONGEST_REST = 0.3
"""After a pass it rests so many times as long as the pass took, so that what happens about together is one pass, and
looking at thousands of cells leaves the processor to them."""

_WRITE_REST = 20
"""The same between two writings of the cells."""


class StatusSink(Protocol):
    """Keeps the run's status."""

    def write(self, run: RunSnapshot, observed: Observed) -> None:
        """Write it.

        Raises:
            Terminal: it could not be written.
        """
        ...


@dataclass(frozen=True, slots=True)
class PassReport:
    """What a pass saw and decided, for whoever shows progress.

    Attributes:
        seeding: share of each scenario's dataset that is seeded, between 0 and 1.
    """

    run: RunSnapshot
    observed: Observed
    plan: Plan
    seeding: Mapping[str, float]


@dataclass(slots=True, kw_only=True)
class Executor:
    """Drives one run.

    Attributes:
        world: its children.
        sink: keeps its status.
        changed: set whenever something happened.
        stop_asked: set to leave the run as it is, Pending.
        is_cancelled: tells whether a person asked to cancel.
        check_room: raises `DiskFull` once the data dir's disk has too little room.
        report: called after every pass.
        clock: tells the time.
    """

    world: World
    sink: StatusSink
    changed: asyncio.Event
    stop_asked: asyncio.Event
    is_cancelled: Callable[[], bool]
    check_room: Callable[[], None]
    report: Callable[[PassReport], None]
    clock: Clock = utc_now
    _written: EvalRunStatus | None = None
    _write_at: float = field(default=0.0)
    _last_actions: tuple[Action, ...] = ()

    async def drive(self, run: RunSnapshot) -> RunSnapshot:
        """Pass until the run is terminal and its children are gone, or until asked to stop.

        Raises:
            Terminal: the status could not be written, or the disk is full: no verdict then, for the run can go on.
        """
        while not self.stop_asked.is_set():
            began = time.process_time()
            self.changed.clear()
            run = self._with_request(run)
            try:
                observed = await self.world.observe(run)
            except Retryable as error:
                await self._wait(error.delay)
                continue
            if not run.status.terminal:
                self._refuse_full_disk(observed)
            plan = decide(run, observed, self.clock())
            run = self._keep(run, plan, observed)
            await self._apply(run, plan)
            self.report(PassReport(run, observed, plan, self.world.datasets.progress()))
            if run.status.terminal and plan.empty:
                break
            again = plan.changed or (plan.actions and plan.actions != self._last_actions)
            self._last_actions = plan.actions
            if not again:
                await self._rest(_REST * (time.process_time() - began))
                await self._wait(self._patience(run, observed))
        return run

    def _refuse_full_disk(self, observed: Observed) -> None:
        for fault in observed.faults:
            if fault.reason == DISK_FULL:
                raise Terminal(fault.message)
        self.check_room()

    def _with_request(self, run: RunSnapshot) -> RunSnapshot:
        return replace(run, cancel=True) if not run.cancel and self.is_cancelled() else run

    def _keep(self, run: RunSnapshot, plan: Plan, observed: Observed) -> RunSnapshot:
        run = replace(run, status=plan.status)
        before = self._written
        urgent = (
            before is None
            or before.phase is not plan.status.phase
            or before.digests != plan.status.digests
            or before.cells.total != plan.status.cells.total
            or plan.status.terminal
        )
        due = time.monotonic() >= self._write_at
        if before != plan.status and (urgent or due):
            began = time.process_time()
            self.sink.write(run, observed)
            self._written = plan.status
            rest = _WRITE_REST * (time.process_time() - began)
            self._write_at = time.monotonic() + max(_WRITE_SECONDS, rest)
        return run

    async def _apply(self, run: RunSnapshot, plan: Plan) -> None:
        for action in plan.actions:
            try:
                await self.world.apply(run, action)
            except (Retryable, Terminal):
                # The world remembers a Terminal as a fault, a Retryable is decided again.
                self.changed.set()
                return

    def _patience(self, run: RunSnapshot, observed: Observed) -> float:
        due = next_deadline(
            observed.attempts,
            deadline=timedelta(seconds=run.suite.agent.deadline_seconds),
            pending=timedelta(seconds=run.suite.limits.pending_deadline_seconds),
        )
        if due is None:
            return _HEARTBEAT_SECONDS
        left = (due - self.clock()).total_seconds() + 0.01
        return min(max(left, 0.01), _HEARTBEAT_SECONDS)

    async def _rest(self, seconds: float) -> None:
        """Let pass what else happens, unless asked to stop."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, _LONGEST_REST)):
                await self.stop_asked.wait()

    async def _wait(self, seconds: float) -> None:
        waiting = [asyncio.create_task(self.changed.wait()), asyncio.create_task(self.stop_asked.wait())]
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
