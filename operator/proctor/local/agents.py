"""The agents' processes: one sandbox per attempt, from its first line in the journal to the end of its group."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from proctor.adapters.control import Door
from proctor.clock import Clock, utc_now
from proctor.core.ids import AttemptKey
from proctor.core.trajectory.outcome import ExitCause, ProcessExit
from proctor.errors import InvalidInput, Retryable, Terminal
from proctor.local.background import Background
from proctor.local.gateway import Gateway
from proctor.local.journal import AttemptJournal
from proctor.reconcile.observed import AttemptSeen, AttemptState


class RunningAgent(Protocol):
    """An agent's process in its sandbox."""

    async def wait(self) -> ProcessExit:
        """Return how it ended, when nothing of it is left."""
        ...

    async def terminate(self) -> None:
        """End it with all that it started: TERM, 5 s, KILL of the group."""
        ...


class AgentLauncher(Protocol):
    """Starts agents."""

    async def __call__(self, key: AttemptKey, door: Door, /) -> RunningAgent:
        """Start the agent of an attempt.

        Raises:
            Terminal: it could not be started.
        """
        ...


@dataclass(slots=True)
class _Entry:
    key: AttemptKey
    created: datetime
    state: AttemptState = AttemptState.STARTING
    incarnation: int | None = None
    process: RunningAgent | None = None
    running: datetime | None = None
    stop_cause: ExitCause | None = None
    exit: ProcessExit | None = None
    telling: bool = False
    life: asyncio.Task[None] | None = None


class Agents:
    """Keeps the started attempts that have not ended.

    Args:
        journal: takes every start before it happens.
        gateway: opens and ends attempts.
        launch: starts agents.
        deadline_seconds: how long an agent may work.
        background: runs what goes on beside the passes, and notifies of its ends.
        clock: tells the time.
    """

    def __init__(
        self,
        journal: AttemptJournal,
        gateway: Gateway,
        launch: AgentLauncher,
        *,
        deadline_seconds: int,
        background: Background,
        clock: Clock = utc_now,
    ) -> None:
        self._journal = journal
        self._gateway = gateway
        self._launch = launch
        self._deadline_seconds = deadline_seconds
        self._clock = clock
        self._entries: dict[AttemptKey, _Entry] = {}
        self._background = background

    def observe(self) -> tuple[AttemptSeen, ...]:
        """Return the attempts that are not known to have ended."""
        ended = {record.key for record in self._gateway.ended}
        return tuple(self._see(entry) for entry in self._entries.values() if entry.key not in ended)

    def start(self, key: AttemptKey) -> None:
        """Begin an attempt, unless it was begun.

        Raises:
            Terminal: the journal can't be written.
        """
        if key not in self._entries:
            self._journal.note_start(key)
            entry = self._entries[key] = _Entry(key, self._clock())
            entry.life = self._background.spawn(self._live(entry))

    def stop(self, key: AttemptKey, cause: ExitCause) -> None:
        """Begin to stop an attempt's process, unless that was begun."""
        entry = self._entries.get(key)
        if entry is not None and entry.stop_cause is None and entry.exit is None:
            entry.stop_cause = cause
            if entry.process is not None:
                self._background.spawn(entry.process.terminate())

    def end(self, key: AttemptKey, exit_: ProcessExit) -> None:
        """Begin to tell the gateway how an attempt ended, unless that was begun."""
        entry = self._entries.get(key)
        if entry is not None and entry.state is AttemptState.EXITED and not entry.telling:
            entry.telling = True
            self._background.spawn(self._tell(entry, exit_))

    async def close(self) -> None:
        """End every process; attempts are left as they are."""
        for key in list(self._entries):
            self.stop(key, ExitCause.CANCELLED)
        lives = [entry.life for entry in self._entries.values() if entry.life is not None]
        await asyncio.gather(*lives, return_exceptions=True)

    def _see(self, entry: _Entry) -> AttemptSeen:
        state, exit_ = entry.state, entry.exit
        if entry.incarnation is not None and entry.incarnation != self._gateway.incarnation:
            state = AttemptState.LOST
        return AttemptSeen(
            key=entry.key,
            state=state,
            created=entry.created,
            running=entry.running,
            waited_us=self._gateway.progress_of(entry.key).waited_us,
            exit=exit_,
            stopping=entry.stop_cause is not None,
        )

    async def _live(self, entry: _Entry) -> None:
        try:
            entry.incarnation, door = await self._gateway.open(entry.key, deadline_seconds=self._deadline_seconds)
        except (Retryable, InvalidInput, Terminal) as error:
            self._finish(entry, AttemptState.LOST, ProcessExit(ExitCause.START_FAILED, None, str(error)[:400]))
            return
        if entry.stop_cause is not None:
            exit_ = ProcessExit(entry.stop_cause, None, "stopped before its process began")
            self._finish(entry, AttemptState.EXITED, exit_)
            return
        try:
            entry.process = await self._launch(entry.key, door)
        except Terminal as error:
            self._finish(entry, AttemptState.EXITED, ProcessExit(ExitCause.START_FAILED, None, str(error)[:400]))
            return
        entry.running = self._clock()
        entry.state = AttemptState.RUNNING
        self._background.notify()
        if entry.stop_cause is not None:
            await entry.process.terminate()
        exit_ = await entry.process.wait()
        if entry.stop_cause is not None:
            exit_ = ProcessExit(entry.stop_cause, exit_.exit_code, exit_.message)
        self._finish(entry, AttemptState.EXITED, exit_)

    def _finish(self, entry: _Entry, state: AttemptState, exit_: ProcessExit) -> None:
        entry.exit = exit_
        entry.state = state
        entry.process = None
        self._background.notify()

    async def _tell(self, entry: _Entry, exit_: ProcessExit) -> None:
        try:
            await self._gateway.end(entry.key, exit_)
        except InvalidInput:
            entry.state = AttemptState.LOST
        except (Retryable, Terminal):
            await asyncio.sleep(0.5)  # the gateway is busy or dying; the next pass sees which
        else:
            entry.state = AttemptState.ENDING
        entry.telling = False
        self._background.notify()
