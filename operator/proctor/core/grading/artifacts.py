"""Answers that are artifacts: what runs over the dataset is asked for through a port, and its rows are marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, assert_never

from proctor.core.grading.alerts import read_alerts
from proctor.core.grading.checks import check_answer
from proctor.core.grading.combining import score_marks
from proctor.core.grading.dashboards import read_dashboards
from proctor.core.grading.marks import Mark, Programmatic, Ungraded
from proctor.core.grading.rows import FetchedRows, Question, Refused, RowSource
from proctor.core.grading.rubric import Rubric
from proctor.core.scenarios.artifact import AlertsKey, ArtifactKey, DashboardKey
from proctor.errors import InvalidInput, Retryable


class Trial(Protocol):
    """An answer of one kind of artifact, read; whatever is in it."""

    @property
    def references(self) -> Sequence[Question]:
        """What the answer key asks."""
        ...

    @property
    def questions(self) -> Sequence[Question]:
        """What the answer asks; nothing where it is none, and then the dataset is left alone."""
        ...

    def mark(self, fetched: FetchedRows) -> tuple[Mark, ...]:
        """Return what the answer earns; the same rows earn the same marks."""
        ...


async def check_artifact(key: ArtifactKey, answer: bytes, source: RowSource | None) -> Programmatic | Ungraded:
    """Grade an answer that is an artifact by what its queries return.

    Args:
        key: what is looked at, with facts filled in.
        answer: the answer.
        source: the dataset; None where there is none at hand.
    """
    trial = _read(key, answer)
    fetched: FetchedRows = {}
    if trial.questions:
        if source is None:
            return Ungraded("its dataset is not at hand, so nothing in it can be run")
        try:
            fetched = await source.fetch([*trial.references, *trial.questions])
        except Retryable as error:
            return Ungraded(f"its dataset did not answer: {error}")
        for reference in trial.references:
            if isinstance(outcome := fetched[reference], Refused):
                return Ungraded(f"a query of the answer key was refused: {outcome.reason}")
    try:
        marks = trial.mark(fetched)
    except InvalidInput as error:
        return Ungraded(f"the answer key is at fault: {error}")
    return Programmatic(score=score_marks(marks), checks=marks)


async def grade_by_rubric(rubric: Rubric, answer: bytes, source: RowSource | None) -> Programmatic | Ungraded:
    """Grade an answer by its text, or as the artifact that its rubric asks for.

    Args:
        rubric: the scenario's.
        answer: the answer.
        source: the dataset; None where there is none at hand.
    """
    if rubric.artifact is None:
        return check_answer(rubric, answer)
    return await check_artifact(rubric.artifact, answer, source)


def _read(key: ArtifactKey, answer: bytes) -> Trial:
    """Read an answer as the kind that is asked for: each kind has its own module."""
    match key:
        case DashboardKey():
            return read_dashboards(key, answer)
        case AlertsKey():
            return read_alerts(key, answer)
    assert_never(key)
