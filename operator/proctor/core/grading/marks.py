"""What grading says: marks, grades, and why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from proctor.core.scenarios.answer import Polarity


@dataclass(frozen=True, slots=True)
class Mark:
    """The outcome of one criterion.

    Attributes:
        id: the criterion.
        weight: its weight.
        polarity: whether it is to be met or to be avoided.
        satisfied: whether it pays: met, or not fired.
        why: one line that a person can check against the answer.
    """

    id: str
    weight: int
    polarity: Polarity
    satisfied: bool
    why: str


@dataclass(frozen=True, slots=True)
class Programmatic:
    """All marks that checks gave an answer.

    Attributes:
        score: from 0 to 1, four digits.
        checks: the marks, in the rubric's order.
        remark: why the whole earns nothing, where that is so; else empty.
    """

    score: Decimal
    checks: tuple[Mark, ...]
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Ungraded:
    """No grade could be formed: excluded, counted, shown; never 0."""

    reason: str


class Weights(NamedTuple):
    """How a score is put together (grading rule 1)."""

    programmatic: Decimal = Decimal("0.4")
    judge: Decimal = Decimal("0.6")
    error_penalty_cap: Decimal = Decimal("0.2")


@dataclass(frozen=True, slots=True)
class Grade:
    """All marks of a cell, and the number in it.

    Attributes:
        score: clamped to 0..1, four digits.
        programmatic: what checks gave.
        judge: the judge's score; None where nobody judged.
        penalty: taken off for the agent's own tool errors.
        scored_by: ``programmatic``, or ``programmatic+judge``.
    """

    score: Decimal
    programmatic: Programmatic
    judge: Decimal | None
    penalty: Decimal
    scored_by: str
