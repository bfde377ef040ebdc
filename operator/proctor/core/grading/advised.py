"""Criteria about advice: what an answer says to cut, and to keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from proctor.core.grading.advice import Advice, Statement, read_advice
from proctor.core.grading.rubric import Rubric
from proctor.core.scenarios.answer import Criterion


@dataclass(frozen=True, slots=True)
class Advised:
    """A statement and the labels of the things that it names."""

    statement: Statement
    labels: frozenset[str]


def read_advised(rubric: Rubric, text: str, *, skip: Callable[[str], bool]) -> list[Advised]:
    """Read a clean answer's advice; nothing where the rubric asks for none."""
    advised = rubric.advised
    if advised is None:
        return []

    # A detail, which counts only with a finding, names nothing by itself: "Convert it to a gauge."
    things = {f"{kind}:{line.id}" for line in rubric.criteria if not line.needs for kind in ("cuts", "sweeps", "keeps")}

    def names(words: str) -> bool:
        return not things.isdisjoint(advised.find(words))

    statements = read_advice(text, names=names, skip=skip)
    return [Advised(statement, advised.find(statement.text)) for statement in statements]


def find_advice(line: Criterion, advised: Iterable[Advised]) -> str | None:
    """Return the words that give the advice which a criterion looks for; None if none do."""
    for found in advised:
        statement, labels = found.statement, found.labels
        if statement.advice is Advice.KEEP and f"keeps:{line.id}" in labels:
            return statement.text
        if statement.advice is not Advice.CUT or f"spares:{line.id}" in labels:
            continue
        if f"cuts:{line.id}" in labels or (f"sweeps:{line.id}" in labels and not statement.limited):
            return statement.text
    return None
