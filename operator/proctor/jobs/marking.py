"""One attempt's grade: checks first, then the judge where it has a say (grading rules 1, 2, 5 and 7)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from proctor.adapters.clickhouse.results import GradeRow
from proctor.bootstrap.grade import GraderParts
from proctor.core.digests import canonical_json
from proctor.core.grading.artifacts import grade_by_rubric
from proctor.core.grading.attempts import grade_attempt
from proctor.core.grading.judge_votes import Judgement
from proctor.core.grading.marks import Programmatic, Ungraded
from proctor.core.grading.rendering import render_grade, render_judgement, render_ungraded
from proctor.core.ids import AttemptKey, CellKey
from proctor.core.trajectory.events import EventKind
from proctor.core.trajectory.outcome import AttemptRecord
from proctor.jobs.judging import JudgePanel

_NOTHING = Decimal("0.0000")
_READ_AT_ONCE = 4
"""Trajectories; a grader that is started again may have hundreds to look at."""


class JudgedBy(NamedTuple):
    """Which judge a grade is from; both empty where checks alone graded."""

    model: str = ""
    prompt_digest: str = ""


@dataclass(frozen=True, slots=True)
class GradedAttempt:
    """A grade, as the summary and as the store have it."""

    key: AttemptKey
    payload: dict[str, Any]
    row: GradeRow


def name_judge(parts: GraderParts, cell: CellKey) -> JudgedBy:
    """Return who judges a cell; controls are graded by checks alone, for they try the instrument, not the judge."""
    if parts.judge is None or cell.control is not None:
        return JudgedBy()
    return JudgedBy(parts.judge.model, parts.judge.scenarios[cell.scenario].digest)


class Marker:
    """Grades attempts one by one.

    Args:
        parts: what to work with.
        panel: the judge; None for a suite without one.
    """

    def __init__(self, parts: GraderParts, panel: JudgePanel | None) -> None:
        self._parts = parts
        self._panel = panel
        self._places = asyncio.Semaphore(_READ_AT_ONCE)

    async def grade(self, record: AttemptRecord, answer: bytes | None) -> GradedAttempt:
        """Grade an attempt.

        Args:
            record: how it went.
            answer: the final answer, empty where the agent gave none; None where the store does not hold it.

        Raises:
            Retryable: the store is away.
        """
        if answer is None:
            lost = Ungraded("the store does not hold the answer's text")
            return self._build(record, render_ungraded(lost, None), None)
        scenario = record.key.cell.scenario
        programmatic = await grade_by_rubric(self._parts.rubrics[scenario], answer, self._parts.rows.get(scenario))
        if isinstance(programmatic, Ungraded):
            return self._build(record, render_ungraded(programmatic, None), None)
        judged = await self._judge(record, answer, programmatic)
        if isinstance(judged, Ungraded):
            return self._build(record, render_ungraded(judged, programmatic), None)
        score = None if judged is None else judged.score
        grade = grade_attempt(record, programmatic, self._parts.weights, judge=score)
        payload = render_grade(grade) | {"ungraded": None, "judgement": self._render(judged)}
        return self._build(record, payload, grade.score)

    async def _judge(
        self, record: AttemptRecord, answer: bytes, programmatic: Programmatic
    ) -> Judgement | Ungraded | None:
        cell = record.key.cell
        if self._panel is None or cell.control is not None:
            return None
        if programmatic.score == 0:
            return Judgement(_NOTHING)  # nothing earns nothing, whatever a judge would make of it
        async with self._places:
            events = await self._parts.store.events(record.key)
        tools = {event.name for event in events if event.kind is EventKind.TOOL_CALL}
        return await self._panel.judge(cell.scenario, answer, tools=tools)

    def _render(self, judged: Judgement | None) -> dict[str, Any] | None:
        return render_judgement(judged, None if self._parts.judge is None else self._parts.judge.price)

    def _build(self, record: AttemptRecord, payload: dict[str, Any], score: Decimal | None) -> GradedAttempt:
        payload = payload | {"attempt": record.key.attempt}
        judge = name_judge(self._parts, record.key.cell)
        row = GradeRow(
            key=record.key,
            rubric_digest=self._parts.rubrics[record.key.cell.scenario].digest,
            judge_model=judge.model,
            judge_prompt_digest=judge.prompt_digest,
            score=score,
            payload=canonical_json(payload).decode(),
        )
        return GradedAttempt(record.key, payload, row)
