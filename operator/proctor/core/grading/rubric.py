"""A rubric made ready: all its patterns, with a dataset's facts put in, as two automata."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import re2

from proctor.core.grading.blame import build_alongside, build_blames, build_explained
from proctor.core.grading.cues import PatternSet
from proctor.core.grading.echo import Echo
from proctor.core.grading.facts import FactValues, check_facts, expand_terms, fill_pattern, fill_text
from proctor.core.scenarios.answer import AnswerKey, Criterion, Polarity
from proctor.core.scenarios.artifact import ArtifactKey, fill_artifact
from proctor.errors import InvalidInput

EFFECT = "effect"
ALONGSIDE = "alongside"
_MAX_PROGRAM = 20_000
"""Instructions of one compiled pattern: RE2 is linear in text, but also in this."""


class PatternFault(InvalidInput):
    """A pattern of a rubric that can't be used.

    Args:
        label: the term's name, or ``kind:criterion``.
        reason: why not.
        fix: what to do.
    """

    def __init__(self, label: str, reason: str, fix: str) -> None:
        super().__init__(f"criterion {label}: {reason}; {fix}")
        self.label = label
        self.reason = reason
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Rubric:
    """What `check_answer` needs; build it once per dataset, use it for all answers.

    Attributes:
        criteria: the rubric's lines, in order.
        most_blamed: with more negative criteria fired, an answer commits to nothing.
        explains: whether a cause is asked for. Else the state of things is, and "healthy" is what an answer may assert.
        clauses: patterns of single clauses, labelled ``kind:criterion``.
        sentences: patterns of parts of sentences, labelled ``criterion:statement:part``.
        advised: patterns of what may be cut or kept, labelled ``kind:criterion``; None if no criterion is about advice.
        parts: per criterion, how many parts each of its statements has.
        echoes: recognises sentences of the brief.
        digest: names the rubric in grades.
        facts: the facts' values as text.
        negative_ids: the criteria that an answer must not meet.
        suspect_ids: those of them whose subjects have no part in the truth.
        artifact: what is looked at instead where the answer is an artifact.
    """

    criteria: tuple[Criterion, ...]
    most_blamed: int
    explains: bool
    clauses: PatternSet
    sentences: PatternSet
    advised: PatternSet | None
    parts: dict[str, tuple[int, ...]]
    echoes: Echo
    digest: str
    facts: dict[str, str]
    negative_ids: tuple[str, ...]
    suspect_ids: tuple[str, ...]
    artifact: ArtifactKey | None

    @property
    def reads_clauses(self) -> bool:
        """Whether any criterion looks at single clauses or whole sentences; advice is read in another way."""
        return any(line.says or line.urges or line.blames or line.dismisses or line.together for line in self.criteria)


def compile_rubric(key: AnswerKey, facts: FactValues, *, told: str) -> Rubric:
    """Make a rubric ready.

    Args:
        key: the scenario's answer key.
        facts: the values of its facts in the dataset.
        told: the brief, whose sentences earn nothing when given back.

    Raises:
        InvalidInput: a fact is missing, or a pattern is no RE2 syntax; the message names it.
    """
    texts = check_facts(key, facts)
    known = expand_terms(key, texts)
    effect = fill_pattern(key.effect, known)
    clauses = [(EFFECT, effect), (ALONGSIDE, build_alongside())]
    sentences: list[tuple[str, str]] = []
    for line in key.criteria:
        clauses += _clause_patterns(line, known, effect)
        for number, parts in enumerate(line.together):
            sentences += [
                (f"{line.id}:{number}:{index}", fill_pattern(part, known)) for index, part in enumerate(parts)
            ]
    advised = [pair for line in key.criteria for pair in _advice_patterns(line, known)]
    for label, pattern in (*clauses, *sentences, *advised):
        check_pattern(label, pattern)
    negative = [line for line in key.criteria if line.polarity is Polarity.NEGATIVE]
    return Rubric(
        criteria=tuple(key.criteria),
        most_blamed=key.most_blamed,
        explains=any(line.blames for line in key.criteria if line.polarity is Polarity.POSITIVE),
        clauses=PatternSet(clauses),
        sentences=PatternSet(sentences),
        advised=PatternSet(advised) if advised else None,
        parts={line.id: tuple(len(parts) for parts in line.together) for line in key.criteria},
        echoes=Echo(told),
        digest=key.rubric_digest,
        facts=texts,
        negative_ids=tuple(line.id for line in negative),
        suspect_ids=tuple(line.id for line in negative if not line.unless),
        artifact=key.artifact and fill_artifact(key.artifact, partial(fill_text, facts=texts)),
    )


def _clause_patterns(line: Criterion, known: dict[str, str], effect: str) -> list[tuple[str, str]]:
    found = [(f"says:{line.id}", fill_pattern(pattern, known)) for pattern in line.says]
    found += [(f"urges:{line.id}", fill_pattern(pattern, known)) for pattern in line.urges]
    if line.blames:
        subject = "|".join(f"(?:{fill_pattern(pattern, known)})" for pattern in line.blames)
        found += [(f"blames:{line.id}", pattern) for pattern in build_blames(subject, effect)]
        found += [(f"explains:{line.id}", pattern) for pattern in build_explained(subject, effect)]
        found.append((f"subject:{line.id}", subject))
    found += [(f"suspect:{line.id}", fill_pattern(pattern, known)) for pattern in line.dismisses]
    return found


def _advice_patterns(line: Criterion, known: dict[str, str]) -> list[tuple[str, str]]:
    kinds = (("cuts", line.cuts), ("sweeps", line.sweeps), ("keeps", line.keeps), ("spares", line.spares))
    return [(f"{kind}:{line.id}", fill_pattern(pattern, known)) for kind, patterns in kinds for pattern in patterns]


def check_pattern(label: str, pattern: str) -> None:
    """Refuse a pattern that can't be compiled, or that is too large to be tried on every clause.

    Raises:
        PatternFault: it can't, or is.
    """
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0] if error.args else error
        reason = f"pattern is no RE2 syntax: {said.decode() if isinstance(said, bytes) else said}: {pattern[:200]}"
        raise PatternFault(label, reason, "RE2 has neither look-around nor back-references") from error
    if compiled.programsize > _MAX_PROGRAM:
        raise PatternFault(label, f"pattern is too large: {pattern[:200]}", "use smaller repetitions")
