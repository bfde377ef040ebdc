"""What is known of every suite, as far as series are made of it.

Nothing is added up over time: each series is read off the statuses that there are. So a restarted operator that has
looked at all suites and runs once, in whatever order, says what the one before it said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from proctor.adapters.prometheus.readings import Reading, read_active, read_finished, read_suite
from proctor.api.run import EvalRunStatus
from proctor.api.suite_status import EvalSuiteStatus

_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Finished:
    ended: datetime
    readings: tuple[Reading, ...]


@dataclass(slots=True)
class _Known:
    """Of one suite: `own` is None until the suite itself was seen, and without it nothing is said."""

    own: tuple[Reading, ...] | None = None
    finished: dict[str, _Finished] = field(default_factory=dict)
    active: dict[str, EvalRunStatus] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether nothing is left to be known."""
        return self.own is None and not self.finished and not self.active


class Board:
    """Suites by namespace and name."""

    def __init__(self) -> None:
        self._suites: dict[tuple[str, str], _Known] = {}

    def put_run(self, namespace: str, suite: str, run: str, status: EvalRunStatus) -> None:
        """Take note of a run's status."""
        known = self._suites.setdefault((namespace, suite), _Known())
        if status.terminal:
            known.active.pop(run, None)
            known.finished[run] = _Finished(status.ended or _EARLIEST, read_finished(status))
        else:
            known.active[run] = status

    def drop_run(self, namespace: str, suite: str, run: str) -> None:
        """Forget a run."""
        known = self._suites.get((namespace, suite))
        if known is None:
            return
        known.active.pop(run, None)
        known.finished.pop(run, None)
        if known.empty:
            del self._suites[namespace, suite]

    def put_suite(self, namespace: str, suite: str, status: EvalSuiteStatus) -> None:
        """Take note of a suite's status."""
        self._suites.setdefault((namespace, suite), _Known()).own = read_suite(status)

    def drop_suite(self, namespace: str, suite: str) -> None:
        """Forget a suite and its runs."""
        self._suites.pop((namespace, suite), None)

    def read(self) -> Iterator[Reading]:
        """Yield what is to be said of every suite that there is, its namespace and name before other labels."""
        # A copy: this is asked from the thread that serves scrapes.
        for key, known in sorted(self._suites.copy().items()):
            if known.own is None:
                continue
            for reading in (*known.own, *_newest(known), *read_active(tuple(known.active.values()))):
                yield Reading(reading.series, reading.value, (*key, *reading.labels))


def _newest(known: _Known) -> tuple[Reading, ...]:
    """Return what the newest finished run says; of two that ended at once, the one whose name is later."""
    finished = known.finished.copy()
    if not finished:
        return ()
    return finished[max(finished, key=lambda run: (finished[run].ended, run))].readings
