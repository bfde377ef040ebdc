"""What a results store holds of a run, read in bulk: some queries for a whole run, never one per cell."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

from proctor.adapters.clickhouse.run_rows import RunRows
from proctor.core.trajectory.counting import select_counting
from proctor.core.trajectory.events import Event
from proctor.core.trajectory.outcome import AttemptRecord


@dataclass(frozen=True, slots=True)
class StoredRun:
    """What the store holds of one run.

    Attributes:
        uid: the run's.
        attempts: every attempt that has ended, by cell and attempt.
        rows: where the rest is read.
    """

    uid: str
    attempts: tuple[AttemptRecord, ...]
    rows: RunRows = field(repr=False)

    @property
    def counting(self) -> tuple[AttemptRecord, ...]:
        """The one attempt of each cell that infrastructure did not fail."""
        return tuple(select_counting(self.attempts))

    async def trajectories(
        self, attempts: Iterable[AttemptRecord] | None = None
    ) -> AsyncIterator[tuple[AttemptRecord, tuple[Event, ...]]]:
        """Yield attempts with their events; some thousand events are in memory at a time.

        Args:
            attempts: which, of `attempts`; the counting ones if left out.

        Raises:
            Retryable: the store went away.
            Terminal: it can't be read.
        """
        async for found in self.rows.trajectories(self._in_order(attempts)):
            yield found

    async def bodies(self, digests: Iterable[str]) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the bodies that are there, by digest; some megabytes are in memory at a time.

        Raises:
            Retryable: the store went away.
            Terminal: it can't be read, or a body was changed after it was stored.
        """
        async for found in self.rows.bodies(digests):
            yield found

    def _in_order(self, attempts: Iterable[AttemptRecord] | None) -> list[AttemptRecord]:
        """Return attempts as the store orders them: numbers by size, where a cell's text would put 10 before 2."""
        return sorted(self.counting if attempts is None else attempts, key=lambda record: record.key)
