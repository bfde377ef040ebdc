"""A results store in memory, as far as grading needs one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from proctor.adapters.clickhouse.results import GradeRow
from proctor.core.ids import AttemptKey
from proctor.core.trajectory.events import Event
from proctor.core.trajectory.outcome import AttemptRecord
from proctor.errors import Retryable


@dataclass
class MemoryStore:
    """A store whose next calls may fail."""

    records: list[AttemptRecord] = field(default_factory=list)
    bodies: dict[str, bytes] = field(default_factory=dict)
    rows: list[GradeRow] = field(default_factory=list)
    trajectories: dict[AttemptKey, tuple[Event, ...]] = field(default_factory=dict)
    failures: int = 0
    calls: int = 0

    def put(self, record: AttemptRecord, answer: bytes | None) -> None:
        self.records.append(record)
        if answer is not None:
            self.bodies[record.answer_digest] = answer

    async def attempts(self, run: str, *, since: datetime | None = None) -> tuple[AttemptRecord, ...]:
        self._work()
        found = (record for record in self.records if record.key.run == run)
        return tuple(record for record in found if since is None or record.ended >= since)

    async def blobs(self, digests: Iterable[str]) -> dict[str, bytes]:
        self._work()
        return {digest: self.bodies[digest] for digest in digests if digest in self.bodies}

    async def grades(self, run: str) -> tuple[GradeRow, ...]:
        self._work()
        return tuple(row for row in self.rows if row.key.run == run)

    async def write_grades(self, grades: Sequence[GradeRow]) -> None:
        self._work()
        self.rows += grades

    async def events(self, key: AttemptKey) -> tuple[Event, ...]:
        self._work()
        return tuple(self.trajectories.get(key, ()))

    async def close(self) -> None:
        self._work()

    def _work(self) -> None:
        self.calls += 1
        if self.failures:
            self.failures -= 1
            raise Retryable("reading grades: ClickHouse is away", delay=0.0)
