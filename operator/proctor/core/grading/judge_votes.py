"""From votes to a judge's score: the median per criterion, weighted (grading rule 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal

from proctor.core.gatewaypolicy.pricing import Usage
from proctor.core.grading.judge_prompt import MOST
from proctor.core.grading.judge_reply import Vote
from proctor.core.scenarios.answer import JudgeCriterion

APART = 2
"""Votes on a criterion that lie so many marks apart don't agree about it; one mark is a matter of taste."""

_DIGITS = Decimal("0.0001")


@dataclass(frozen=True, slots=True)
class JudgedMark:
    """One criterion's outcome.

    Attributes:
        id: the criterion.
        weight: its weight.
        score: the median of the votes, from 0 to 5.
        votes: every vote's score, in order.
        reason: of the vote nearest to the median.
    """

    id: str
    weight: int
    score: Decimal
    votes: tuple[int, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the judge gave an answer.

    Attributes:
        score: from 0 to 1, four digits.
        marks: per criterion; empty where the judge was not asked, because the checks found nothing.
        usage: tokens of all votes, retries included.
    """

    score: Decimal
    marks: tuple[JudgedMark, ...] = ()
    usage: Usage = field(default_factory=Usage)


def combine_votes(criteria: Sequence[JudgeCriterion], votes: Sequence[Vote], usage: Usage) -> Judgement:
    """Return the judgement that votes amount to.

    Args:
        criteria: what was judged.
        votes: at least one.
        usage: what they took.
    """
    marks = tuple(_combine(line, votes) for line in criteria)
    weight = sum(line.weight for line in criteria)
    earned = sum((mark.weight * mark.score for mark in marks), Decimal(0))
    return Judgement((earned / (MOST * weight)).quantize(_DIGITS, ROUND_HALF_EVEN), marks, usage)


def is_borderline(votes: Sequence[Vote]) -> bool:
    """Return whether votes on some criterion lie so far apart that a few more could move their median (P20)."""
    criteria = votes[0] if votes else ()
    spreads = [[vote[line].score for vote in votes] for line in criteria]
    return any(max(given) - min(given) >= APART for given in spreads)


def add_usage(one: Usage, other: Usage) -> Usage:
    """Return the tokens of both."""
    return Usage(
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        one.cache_read_tokens + other.cache_read_tokens,
        one.cache_write_tokens + other.cache_write_tokens,
    )


def _combine(line: JudgeCriterion, votes: Sequence[Vote]) -> JudgedMark:
    given = [vote[line.id] for vote in votes]
    ordered = sorted(mark.score for mark in given)
    middle = len(ordered) // 2
    median = Decimal(ordered[middle] if len(ordered) % 2 else ordered[middle - 1] + ordered[middle])
    if len(ordered) % 2 == 0:
        median /= 2
    nearest = min(given, key=lambda mark: abs(mark.score - median))
    return JudgedMark(line.id, line.weight, median, tuple(mark.score for mark in given), nearest.reason)
