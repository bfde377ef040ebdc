"""Checks: what an answer earns by the rubric, without a model (M-A9; grading rules 2 to 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

import re2

from proctor.core.grading.advised import Advised, find_advice, read_advised
from proctor.core.grading.answer_text import clean_answer
from proctor.core.grading.clauses import Clause, Force, read_clauses
from proctor.core.grading.combining import score_marks
from proctor.core.grading.marks import Mark, Programmatic
from proctor.core.grading.rubric import ALONGSIDE, EFFECT, Rubric
from proctor.core.scenarios.answer import Criterion, Polarity

_QUOTED = 160
_LISTED = 2
"""Suspects that one clause may name beside a finding; a clause with more is a list of everything."""

_ANAPHORS = (
    "these ",
    "they ",
    "they're ",
    "that ",
    "this ",
    "it ",
    "it's ",
    "both ",
    "all ",
    "neither ",
    "none ",
    "those ",
    "which ",
    "no: ",
    "no, ",
    "however",
    "but ",
    "and ",
    "so ",
)
_PRONOUNS = re2.compile(
    r"^(?:[\w'-]+ ){0,3}(?:it|its|they|them|their|this|these|that|those|there|each)\b|^more\b|^the (?:last|final)\b"
)
_TAKING_BACK = tuple(
    f"{opening}{begin}"
    for opening in ("", "but ", "yet ", "and ", "so ")
    for begin in (
        *(
            f"{anaphor} {verb}"
            for anaphor in ("that", "this", "it", "these", "they", "those")
            for verb in ("is", "isn't", "was", "wasn't", "are", "aren't", "were", "weren't")
        ),
        "they're ",
        "it's ",
        "that's ",
    )
)
_KEYED = re2.compile(r"^\w[\w .-]{1,30}: ")
_KEYED_LINES = 6
_PREDICATES = (
    "is isn't are aren't was wasn't were weren't do don't does doesn't did didn't has hasn't have haven't had never "
    "cannot can't can could"
)
_TAKEN_UP = (*_ANAPHORS, *(f"{verb} " for verb in _PREDICATES.split(" ")))
"""How a clause begins that speaks of what the clause before it names."""

_BARE_DENIAL = re2.compile(
    r"^(?:so |and |but |thus |therefore |clearly |simply |just |hence )*(?:not (?:the |a |its )?(?:root )?cause|"
    r"not causal|"
    r"non-causal|not (?:related|relevant|involved)|(?:rejected|excluded|dismissed|ruled out)|not (?:on|in|"
    r"part of) .{0,40}(?:path|flow|traces?)|unrelated|irrelevant|(?:a )?red herring|(?:just )?noise|"
    r"coincidence|no|"
    r"(?:concurrent|simultaneous)? ?(?:but )?independent)(?: here)?[.!)]*$"
)
"""A denial without a subject, which then is that of the clause before."""

_CAUSE_WORDS = (
    "cause",
    "unrelated",
    "red herring",
    "what ",
    "why",
    "to blame",
    "responsible",
    "coinciden",
    "decoy",
    "behind",
    "related",
    "involved",
)
_ASSERTED = frozenset({Force.ASSERTED})
_CLAIMED = frozenset({Force.ASSERTED, Force.DOUBTED})


@dataclass(frozen=True, slots=True)
class _Reading:
    """A clause and the labels of the patterns that it matches."""

    clause: Clause
    labels: frozenset[str]
    suspects: int


def check_answer(rubric: Rubric, answer: bytes | str) -> Programmatic:
    """Grade an answer by checks alone."""
    text = clean_answer(answer)
    readings = _read_all(rubric, text, skip=rubric.echoes)
    met = _find_all(rubric, readings, read_advised(rubric, text, skip=rubric.echoes))
    fired = [name for name in rubric.negative_ids if met[name] is not None]
    states = rubric.advised or not rubric.explains
    remark = _judge_care(rubric, fired) if states else _judge_commitment(rubric, readings, met, fired)
    marks = tuple(_mark(line, met, remark) for line in rubric.criteria)
    return Programmatic(score=score_marks(marks), checks=marks, remark=remark)


def find_statement(rubric: Rubric, criterion: str, sentence: str) -> str | None:
    """Return the words of a sentence that meet one criterion taken alone; None if none do."""
    text = clean_answer(sentence)
    readings = _read_all(rubric, text, skip=lambda _: False)
    return _find_all(rubric, readings, read_advised(rubric, text, skip=lambda _: False))[criterion]


def _find_all(rubric: Rubric, readings: list[_Reading], advised: list[Advised]) -> dict[str, str | None]:
    """Return the words that meet each criterion, those that another one silences left out."""
    found = {line.id: _find(line, rubric, readings) or find_advice(line, advised) for line in rubric.criteria}
    silenced = [line.id for line in rubric.criteria if any(found[other] for other in line.unless)]
    return found | dict.fromkeys(silenced)


def _read_all(rubric: Rubric, text: str, *, skip: Callable[[str], bool]) -> list[_Reading]:
    if not rubric.reads_clauses:
        return []  # telling what each clause claims is a third of grading advice, and nothing would ask for it
    clauses = read_clauses(text, skip=skip, titled=not rubric.explains)
    return _retract([_read(rubric, clause) for clause in clauses])


def _read(rubric: Rubric, clause: Clause) -> _Reading:
    if not rubric.explains:
        clause = _as_report(clause)
    labels = rubric.clauses.find(clause.text)
    suspects = sum(f"subject:{name}" in labels for name in rubric.suspect_ids)
    return _Reading(clause, labels, suspects)


def _as_report(clause: Clause) -> Clause:
    """Read a clause where no cause is asked for: "healthy" denies nothing, and what follows an "if" is not said."""
    if clause.conditional:
        return replace(clause, force=Force.CONSIDERED, proposing=False, dismissing=False)
    return replace(clause, force=Force.ASSERTED) if clause.well else clause


def _retract(readings: list[_Reading]) -> list[_Reading]:
    """Take back what the next clause takes back: "A failed, but that was not the cause", "A failed. It is a decoy"."""
    kept = list(readings)
    for index in range(1, len(readings)):
        before, after = readings[index - 1], readings[index]
        if after.suspects and after.clause.text.startswith("or ") and before.clause.sentence == after.clause.sentence:
            kept[index - 1] = replace(before, clause=replace(before.clause, force=Force.DOUBTED))
        if _takes_back(after) and before.clause.force is Force.ASSERTED and before.clause.block == after.clause.block:
            kept[index - 1] = replace(before, clause=replace(before.clause, force=Force.DENIED, dismissing=True))
    return kept


def _takes_back(reading: _Reading) -> bool:
    """Whether a clause denies something that another clause has named."""
    text = reading.clause.text
    if any(label.startswith(("subject:", "suspect:")) for label in reading.labels):
        return False
    if _BARE_DENIAL.match(text):
        return True
    return (
        reading.clause.force is Force.DENIED
        and text.startswith(_TAKING_BACK)
        and any(word in text for word in _CAUSE_WORDS)
    )


def _find(line: Criterion, rubric: Rubric, readings: list[_Reading]) -> str | None:
    """Return the words that meet a criterion; None if none do."""
    if line.polarity is Polarity.NEGATIVE:
        return _find_blame(line, readings, _CLAIMED) or _find_saying(line, readings) or _find_urging(line, readings)
    own = [reading for reading in readings if _states(line, reading)]
    return (
        _find_blame(line, own, _ASSERTED)
        or _find_saying(line, own)
        or _find_together(line, rubric, own)
        or _find_dismissal(line, readings)
    )


def _states(line: Criterion, reading: _Reading) -> bool:
    """Whether a clause can state a finding: it is no list of names, and no list of all suspects.

    A list of names without suspects, say a trace's spans, may give the details of a finding that is stated elsewhere.
    """
    if reading.clause.listing and (reading.suspects > 0 or not line.needs):
        return False
    return reading.suspects <= _LISTED or reading.clause.dismissing


def _find_blame(line: Criterion, readings: Iterable[_Reading], forces: frozenset[Force]) -> str | None:
    """A clause that names the criterion's subject as the cause of what was reported."""
    negative = line.polarity is Polarity.NEGATIVE
    for reading in readings:
        clause, labels = reading.clause, reading.labels
        if f"blames:{line.id}" not in labels or clause.force not in forces:
            continue
        if negative and (clause.negated or ALONGSIDE in labels):
            continue
        if not negative and reading.suspects and " or " in clause.text:
            continue  # "the database or the CDN": no claim
        if f"explains:{line.id}" in labels and EFFECT not in labels:
            continue
        return clause.text
    return None


def _find_saying(line: Criterion, readings: Iterable[_Reading]) -> str | None:
    """A clause that says so; a finding or a fault in so many words, without any negation."""
    strict = line.polarity is Polarity.NEGATIVE or not line.needs
    for reading in readings:
        if f"says:{line.id}" in reading.labels and reading.clause.force is Force.ASSERTED:
            if strict and reading.clause.negated:
                continue
            return reading.clause.text
    return None


def _find_urging(line: Criterion, readings: Iterable[_Reading]) -> str | None:
    """A clause that wants it: says so, recommends it, or says that it may have to be."""
    for reading in readings:
        clause = reading.clause
        wants = clause.force in _CLAIMED or clause.proposing
        if wants and not clause.negated and f"urges:{line.id}" in reading.labels:
            return clause.text
    return None


def _find_together(line: Criterion, rubric: Rubric, readings: Iterable[_Reading]) -> str | None:
    """A sentence whose asserted clauses hold all parts of one statement, in any order."""
    if not line.together:
        return None
    for text in _passages(readings):
        labels = rubric.sentences.find(text)
        for number, parts in enumerate(rubric.parts[line.id]):
            if all(f"{line.id}:{number}:{part}" in labels for part in range(parts)):
                return text
    return None


def _passages(readings: Iterable[_Reading]) -> Iterator[str]:
    """What each sentence asserts; with the sentence before it, where it speaks of "it" or "they".

    Lines with a key ("Service: …", "Host: …") that follow each other speak of one thing, as a table's row does.
    """
    before, block = "", -1
    keyed: list[str] = []
    for _, group in groupby(readings, key=lambda reading: reading.clause.sentence):
        clauses = [reading.clause for reading in group]
        text = ", ".join(clause.text for clause in clauses if clause.force is Force.ASSERTED and not clause.negated)
        if text:
            taking_up = before and clauses[0].block == block and _PRONOUNS.match(clauses[0].text) is not None
            yield f"{before}, {text}" if taking_up else text
        keyed = [*keyed[-_KEYED_LINES:], text] if text and _KEYED.match(clauses[0].text) else []
        if len(keyed) > 1:
            yield ", ".join(keyed)
        before, block = text, clauses[0].block


def _is_blaming(reading: _Reading) -> bool:
    """Whether a clause blames any suspect, and does not only explain it."""
    return any(
        name.startswith("blames:") and (EFFECT in reading.labels or f"explains:{name[7:]}" not in reading.labels)
        for name in reading.labels
    )


def _find_dismissal(line: Criterion, readings: list[_Reading]) -> str | None:
    """A clause that rules a suspect out: in itself, or by taking up the clause before it ("these are unrelated")."""
    label = f"suspect:{line.id}"
    for index, reading in enumerate(readings):
        if not reading.clause.dismissing:
            continue
        if label in reading.labels:
            return reading.clause.text
        before = readings[index - 1] if index else None
        if (
            before is not None
            and label in before.labels
            and before.clause.block == reading.clause.block
            and (reading.clause.text.startswith(_TAKEN_UP) or _BARE_DENIAL.match(reading.clause.text))
            and (before.clause.force is Force.CONSIDERED or not _is_blaming(before))
        ):
            return f"{before.clause.text}, {reading.clause.text}"
    return None


def _judge_commitment(rubric: Rubric, readings: list[_Reading], met: dict[str, str | None], fired: list[str]) -> str:
    """Say why the whole earns nothing: it claims nothing, or too much (rule 2). Empty if it commits to a finding."""
    positive = [line for line in rubric.criteria if line.polarity is Polarity.POSITIVE]
    findings = [line for line in positive if line.blames]
    claimed = any(_find_blame(line, readings, _ASSERTED) is not None for line in findings)
    if fired:
        return _judge_blame(rubric, readings, fired, findings if claimed else [])
    if not claimed:
        linked = _links_effect(readings, findings)
        listed = _listed_alike(rubric, readings)
        if len(listed) > _LISTED and not linked:
            return f"it lists {len(listed)} other things alike, and names none as the cause"
        stated = linked and all(met[line.id] for line in findings)
        if not stated and any(reading.clause.refusing for reading in readings):
            return "it says that it does not know the cause"
    if not any(met[line.id] for line in positive if not line.needs):
        return "it holds no finding"
    return ""


def _judge_care(rubric: Rubric, fired: list[str]) -> str:
    """Say why advice or a report as a whole earns nothing: too much in it does harm. Empty if it does not."""
    if len(fired) > rubric.most_blamed and not rubric.advised:
        return f"it says {len(fired)} things that are not so: {', '.join(fired)}"
    if len(fired) > rubric.most_blamed:
        return f"it does away with {len(fired)} things that must be kept: {', '.join(fired)}"
    return ""


def _judge_blame(rubric: Rubric, readings: list[_Reading], fired: list[str], findings: list[Criterion]) -> str:
    """Say why an answer that blames what is not the cause earns nothing; empty if it claims the true one besides."""
    if len(fired) > rubric.most_blamed:
        return f"it blames {len(fired)} things that are not the cause: {', '.join(fired)}"
    if not findings:
        return f"the cause that it names is another: {fired[0]}"
    if _denies_finding(readings, findings):
        return f"it denies the cause that it names, and blames another thing: {fired[0]}"
    return ""


def _denies_finding(readings: list[_Reading], findings: list[Criterion]) -> bool:
    """Whether a clause says of the true cause that it is none, in itself or with the clause after it."""
    for index, reading in enumerate(readings):
        clause = reading.clause
        if clause.force is not Force.DENIED or reading.suspects:
            continue
        if not any(f"subject:{line.id}" in reading.labels for line in findings):
            continue
        after = readings[index + 1] if index + 1 < len(readings) else reading
        if any(word in clause.text for word in _CAUSE_WORDS) or _BARE_DENIAL.match(after.clause.text):
            return True
    return False


def _links_effect(readings: list[_Reading], findings: list[Criterion]) -> bool:
    """Whether what is said of the true cause stands next to what was reported."""
    truths = {f"subject:{line.id}" for line in findings}
    own = [reading for reading in readings if reading.clause.force is Force.ASSERTED and not reading.suspects]
    for index, reading in enumerate(own):
        near = [other for other in own[max(0, index - 2) : index + 3] if other.clause.block == reading.clause.block]
        if reading.labels & truths and any(EFFECT in other.labels for other in near):
            return True
    return False


def _listed_alike(rubric: Rubric, readings: list[_Reading]) -> list[str]:
    """The suspects that an answer states, and nowhere rules out."""
    stated: set[str] = set()
    ruled_out: set[str] = set()
    for reading in readings:
        named = {name for name in rubric.suspect_ids if f"subject:{name}" in reading.labels}
        if reading.clause.dismissing or reading.clause.force is Force.DENIED:
            ruled_out |= named
        elif reading.clause.force is Force.ASSERTED:
            stated |= named
    return sorted(stated - ruled_out)


def _mark(line: Criterion, met: dict[str, str | None], remark: str) -> Mark:
    words = met[line.id]
    if line.polarity is Polarity.NEGATIVE:
        spared, harmed = _verdicts(line)
        why = spared if words is None else f"{harmed}: {_quoted(words)}"
        return Mark(line.id, line.weight, line.polarity, words is None, why)
    if words is None:
        return Mark(line.id, line.weight, line.polarity, satisfied=False, why="nothing in the answer says so")
    if remark:
        return Mark(line.id, line.weight, line.polarity, satisfied=False, why=f"does not count: {remark}")
    if line.needs and not any(met[needed] for needed in line.needs):
        return Mark(
            line.id, line.weight, line.polarity, satisfied=False, why=f"counts only with {' or '.join(line.needs)}"
        )
    return Mark(line.id, line.weight, line.polarity, satisfied=True, why=f"says: {_quoted(words)}")


def _verdicts(line: Criterion) -> tuple[str, str]:
    """Return how it is put that an answer keeps clear of a negative criterion, and that it does not."""
    if line.cuts or line.sweeps:
        return "is spared", "does away with it"
    return ("is not blamed", "blames it") if line.blames else ("is not said", "says")


def _quoted(words: str) -> str:
    return f'"{words}"' if len(words) <= _QUOTED else f'"{words[:_QUOTED]}…"'
