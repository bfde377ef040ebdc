"""How far each cell is, read from attempts and grades alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from proctor.core.ids import CellKey
from proctor.core.trajectory.counting import find_counting
from proctor.core.trajectory.outcome import AttemptRecord, Outcome
from proctor.reconcile.observed import AttemptSeen, AttemptState, GradeSeen, Observed


class CellState(StrEnum):
    """Where a cell is counted; each cell is in exactly one, so the counts always add up (P29)."""

    PENDING = "pending"
    RUNNING = "running"
    GRADING = "grading"
    """Its valid attempt ended, its grade is awaited; counted as running."""
    GRADED = "graded"
    UNGRADED = "ungraded"
    INFRA_ERRORED = "infraErrored"


FINAL_STATES = frozenset({CellState.GRADED, CellState.UNGRADED, CellState.INFRA_ERRORED})


@dataclass(frozen=True, slots=True, kw_only=True)
class CellProgress:
    """One cell.

    Attributes:
        valid: the first attempt that ended otherwise than by infrastructure; the only one that is graded.
        grade: the grade of `valid`; None while there is none.
        live: its attempt that has not ended yet.
        failures: attempts lost to infrastructure.
        next_attempt: the number that a new attempt would get; numbers are never used twice.
        last_failure: what the last infrastructure failure was, for people.
    """

    key: CellKey
    state: CellState
    valid: AttemptRecord | None = None
    grade: GradeSeen | None = None
    live: AttemptSeen | None = None
    failures: int = 0
    next_attempt: int = 1
    last_failure: str = ""

    @property
    def final(self) -> bool:
        """Nothing that happens later in this run changes it."""
        return self.state in FINAL_STATES

    @property
    def ran(self) -> bool:
        """No attempt of it will be started any more."""
        return self.valid is not None or self.state is CellState.INFRA_ERRORED


def count_replicates(progress: Sequence[CellProgress]) -> int:
    """Return how many replicates a run has by now."""
    return max(cell.key.replicate for cell in progress)


def read_progress(cells: Sequence[CellKey], observed: Observed, *, infra_retries: int) -> tuple[CellProgress, ...]:
    """Derive every cell's progress.

    Args:
        cells: all cells of the run, controls included.
        observed: what was seen.
        infra_retries: new attempts that a cell may have after infrastructure failures.
    """
    ended: defaultdict[CellKey, list[AttemptRecord]] = defaultdict(list)
    for record in sorted(observed.ended, key=lambda record: record.key.attempt):
        ended[record.key.cell].append(record)
    started: defaultdict[CellKey, list[AttemptSeen]] = defaultdict(list)
    for attempt in sorted(observed.attempts, key=lambda attempt: attempt.key.attempt):
        started[attempt.key.cell].append(attempt)
    withdrawn: defaultdict[CellKey, set[int]] = defaultdict(set)
    for key in observed.withdrawn:
        withdrawn[key.cell].add(key.attempt)
    touched = ended.keys() | started.keys() | withdrawn.keys()
    return tuple(
        _read_cell(
            _CellFacts(cell, ended[cell], started[cell], withdrawn[cell], observed.grader.grades.get(cell)),
            infra_retries,
        )
        # Most cells of a large run, at most looks.
        if cell in touched
        else CellProgress(key=cell, state=CellState.PENDING)
        for cell in cells
    )


@dataclass(frozen=True, slots=True)
class _CellFacts:
    key: CellKey
    ended: list[AttemptRecord]
    started: list[AttemptSeen]
    withdrawn: set[int]
    grade: GradeSeen | None


def _read_cell(facts: _CellFacts, infra_retries: int) -> CellProgress:
    next_attempt = 1 + max(
        (
            *(record.key.attempt for record in facts.ended),
            *(attempt.key.attempt for attempt in facts.started),
            *facts.withdrawn,
        ),
        default=0,
    )
    failures, last_failure = _count_failures(facts)
    valid = find_counting(facts.ended)
    live = next((attempt for attempt in facts.started if not is_gone(attempt)), None)
    grade = facts.grade
    if valid is None or (grade is not None and grade.attempt != valid.key.attempt):
        # A grade of another attempt is a grade of another observation.
        grade = None
    if valid is not None:
        state = _graded_state(grade)
    elif live is not None:
        state = CellState.RUNNING
    elif failures > infra_retries:
        state = CellState.INFRA_ERRORED
    else:
        state = CellState.PENDING
    return CellProgress(
        key=facts.key,
        state=state,
        valid=valid,
        grade=grade,
        live=live,
        failures=failures,
        next_attempt=next_attempt,
        last_failure=last_failure,
    )


def is_gone(attempt: AttemptSeen) -> bool:
    """Tell whether an attempt was lost and nothing of it runs any more."""
    return attempt.state is AttemptState.LOST and attempt.exit is not None


def _graded_state(grade: GradeSeen | None) -> CellState:
    if grade is None:
        return CellState.GRADING
    return CellState.UNGRADED if grade.score is None else CellState.GRADED


def _count_failures(facts: _CellFacts) -> tuple[int, str]:
    failures = 0
    last = ""
    for record in facts.ended:
        if record.outcome is Outcome.INFRA_ERROR and record.key.attempt not in facts.withdrawn:
            failures += 1
            last = record.reason
    for attempt in facts.started:
        if is_gone(attempt):
            failures += 1
            last = attempt.exit.message if attempt.exit is not None and attempt.exit.message else "attempt lost"
    return failures, last


def count_states(progress: Iterable[CellProgress]) -> dict[CellState, int]:
    """Count cells by state; every state is there, and the counts add up to the number of cells."""
    counts = dict.fromkeys(CellState, 0)
    for cell in progress:
        counts[cell.state] += 1
    return counts


def count_outcomes(progress: Iterable[CellProgress]) -> dict[Outcome, int]:
    """Count how the valid attempts ended (grading rule 9); a histogram beside the counts, not part of them."""
    counts: dict[Outcome, int] = {outcome: 0 for outcome in Outcome if outcome is not Outcome.INFRA_ERROR}
    for cell in progress:
        if cell.valid is not None:
            counts[cell.valid.outcome] += 1
    return counts
