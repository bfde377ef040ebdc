"""From marks to a score: weights, the penalty for tool errors, and what nothing earns (grading rules 1, 2, 8)."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal

from proctor.core.grading.marks import Grade, Mark, Programmatic, Weights
from proctor.core.scenarios.answer import Polarity

_DIGITS = Decimal("0.0001")


def score_marks(marks: Sequence[Mark]) -> Decimal:
    """Return the share of weight that marks earn; negatives pay in proportion to the positive weight earned."""
    positive = sum(mark.weight for mark in marks if mark.polarity is Polarity.POSITIVE)
    earned = sum(mark.weight for mark in marks if mark.polarity is Polarity.POSITIVE and mark.satisfied)
    avoided = sum(mark.weight for mark in marks if mark.polarity is Polarity.NEGATIVE and mark.satisfied)
    if positive == 0 or earned == 0:
        return Decimal("0.0000")
    total = sum(mark.weight for mark in marks)
    return _rounded(Decimal(earned * positive + avoided * earned) / Decimal(positive * total))


def penalise_errors(calls: int, agent_errors: int, infra_errors: int, cap: Decimal) -> Decimal:
    """Return what an agent's own tool errors cost: their rate over calls that infrastructure did not spoil.

    Whose error a call was is the gateway's structured finding, never read from text (rule 8).
    """
    counted = calls - infra_errors
    if counted <= 0 or agent_errors <= 0:
        return Decimal("0.0000")
    return _rounded(min(cap, Decimal(agent_errors) / Decimal(counted)))


def combine(programmatic: Programmatic, *, judge: Decimal | None, penalty: Decimal, weights: Weights) -> Grade:
    """Return the grade of a cell; without a judge its score is programmatic, and says so (rule 1, rule 5)."""
    if judge is None:
        raw, scored_by = programmatic.score, "programmatic"
    else:
        raw = weights.programmatic * programmatic.score + weights.judge * judge
        scored_by = "programmatic+judge"
    score = min(Decimal(1), max(Decimal(0), raw - penalty))
    return Grade(_rounded(score), programmatic, judge, penalty, scored_by)


def _rounded(number: Decimal) -> Decimal:
    return number.quantize(_DIGITS, ROUND_HALF_EVEN)
