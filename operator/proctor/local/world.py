"""The children of a run on one machine: looked at for every pass, and changed by what it decides."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, assert_never

from proctor.clock import utc_now
from proctor.core.ids import AttemptKey
from proctor.errors import DiskFull, Retryable, Terminal
from proctor.local.agents import Agents
from proctor.local.background import Background
from proctor.local.gateway import Gateway
from proctor.local.grader import Grader
from proctor.reconcile.decide import decide
from proctor.reconcile.ending import plan_withdrawal
from proctor.reconcile.observed import AttemptState, DatasetSeen, FaultSeen, Isolation, Observed
from proctor.reconcile.plan import (
    Action,
    EndAttempt,
    FinishGrading,
    PrepareDataset,
    ProbeServers,
    ProveIsolation,
    ReleaseChildren,
    ServeDataset,
    StartAttempt,
    StartGateway,
    StartGrader,
    StopAttempt,
)
from proctor.reconcile.snapshot import RunSnapshot

DISK_FULL = "DiskFull"
"""The reason of a fault that ends the command, and not the run."""

_POLL_SECONDS = 0.1
_WITHDRAW_SECONDS = 12.0
"""TERM, five seconds, KILL, and the word to the gateway; whoever pressed Ctrl-C is waiting."""


class DatasetSide(Protocol):
    """The datasets of a run."""

    faults: list[Terminal]

    def observe(self) -> Mapping[str, DatasetSeen]:
        """Return what each is like now."""
        ...

    def progress(self) -> Mapping[str, float]:
        """Return the share of each that is seeded, between 0 and 1."""
        ...

    def prepare(self, scenario: str) -> None:
        """Begin to seed one, unless it is there or that was begun."""
        ...

    def serve(self, scenario: str) -> None:
        """Begin to serve one to servers under test, unless that was begun."""
        ...

    async def close(self) -> None:
        """End what serves them."""
        ...


@dataclass(slots=True)
class IsolationProof:
    """Whether sandboxes reach nothing but the gateway, once it was tried."""

    prove: Callable[[], str]
    waived: bool
    state: Isolation = Isolation.UNPROVEN
    message: str = ""

    def apply(self) -> None:
        """Try it."""
        if self.waived:
            self.state = Isolation.WAIVED
            return
        self.message = self.prove()
        self.state = Isolation.BROKEN if self.message else Isolation.ENFORCED


class World:
    """Observer and applier of one machine.

    Args:
        datasets: the datasets.
        gateway: the gateway.
        grader: the grader.
        agents: the agents.
        isolation: the proof of isolation.
        withdrawn: attempts that were started by an executor that is no more.
        background: checked for mistakes at every look.
        faults: further things that no retry can mend.
    """

    def __init__(  # noqa: PLR0913 - one child each
        self,
        *,
        datasets: DatasetSide,
        gateway: Gateway,
        grader: Grader,
        agents: Agents,
        isolation: IsolationProof,
        withdrawn: frozenset[AttemptKey],
        background: Background,
        faults: Callable[[], list[FaultSeen]] = list,
    ) -> None:
        self.datasets = datasets
        self.gateway = gateway
        self.grader = grader
        self.agents = agents
        self._isolation = isolation
        self._withdrawn = withdrawn
        self._background = background
        self._faults = faults
        self._met: list[FaultSeen] = []

    async def observe(self, run: RunSnapshot) -> Observed:
        """Look at every child.

        Raises:
            Retryable: the look failed.
        """
        self._background.check()
        try:
            grader = self.grader.observe()
        except Terminal as error:
            raise Retryable(f"observing run {run.name}: {error}") from error
        return Observed(
            datasets=self.datasets.observe(),
            isolation=self._isolation.state,
            isolation_message=self._isolation.message,
            gateway=self.gateway.observe(),
            probes=self.gateway.probes,
            probing=self.gateway.probing,
            attempts=self.agents.observe(),
            ended=self.gateway.ended,
            withdrawn=self._withdrawn,
            grader=grader,
            faults=tuple(self._collect_faults()),
        )

    async def apply(self, run: RunSnapshot, action: Action) -> None:
        """Begin an effect.

        Raises:
            Terminal: it can never be done; every later look says so.
        """
        try:
            self._apply(action)
        except Terminal as error:
            self._met.append(to_fault(error))
            raise Terminal(f"run {run.name}: {error}") from error
        if isinstance(action, ReleaseChildren):
            await self.release()

    async def withdraw(self, run: RunSnapshot) -> tuple[RunSnapshot, Observed]:
        """End every open attempt, so that its record is whole, and leave the run as it is: Pending.

        Returns:
            The run with its counts after that, and what was seen last.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WITHDRAW_SECONDS):
                await self._end_all(run)
        seen = await self.observe(run)
        gone = frozenset(attempt.key for attempt in seen.attempts)
        seen = replace(seen, attempts=(), withdrawn=seen.withdrawn | gone)
        status = decide(run, seen, utc_now()).status
        # Whatever the last look would have decided is for the next executor to decide.
        return (run if status.terminal else replace(run, status=status)), seen

    async def _end_all(self, run: RunSnapshot) -> None:
        while True:
            attempts = (await self.observe(run)).attempts
            if all(attempt.state in {AttemptState.ENDING, AttemptState.LOST} for attempt in attempts):
                return
            for action in plan_withdrawal(attempts):
                await self.apply(run, action)
            await asyncio.sleep(_POLL_SECONDS)

    async def release(self) -> None:
        """End every child, in an order in which nothing is lost: agents, gateway, grader, engines."""
        await self.agents.close()
        await self.gateway.stop()
        await self.grader.stop()
        await self.datasets.close()

    def _apply(self, action: Action) -> None:
        match action:
            case StartAttempt(key):
                self.agents.start(key)
            case StopAttempt(key, cause):
                self.agents.stop(key, cause)
            case EndAttempt(key, exit_):
                self.agents.end(key, exit_)
            case PrepareDataset(scenario):
                self.datasets.prepare(scenario)
            case ServeDataset(scenario):
                self.datasets.serve(scenario)
            case _:
                self._apply_to_process(action)

    def _apply_to_process(
        self, action: ProveIsolation | StartGateway | ProbeServers | StartGrader | FinishGrading | ReleaseChildren
    ) -> None:
        match action:
            case ProveIsolation():
                self._isolation.apply()
            case StartGateway():
                self.gateway.start()
            case ProbeServers():
                self.gateway.probe()
            case StartGrader():
                self.grader.start()
            case FinishGrading():
                self.grader.finish()
            case ReleaseChildren():
                pass  # awaited by `apply`
            case _:
                assert_never(action)

    def _collect_faults(self) -> list[FaultSeen]:
        met = [*self.datasets.faults, *self.gateway.faults, *self.grader.faults]
        return [*self._met, *self._faults(), *(to_fault(error) for error in met)]


def to_fault(error: Terminal) -> FaultSeen:
    """Name the kind of a failure that no retry can mend."""
    return FaultSeen(DISK_FULL if isinstance(error, DiskFull) else "InfrastructureFailed", str(error))
