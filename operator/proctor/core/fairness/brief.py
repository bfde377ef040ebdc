"""Whether a brief gives anything away."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from proctor.core.fairness.folder import Draft
from proctor.core.grading.checks import check_answer, find_statement
from proctor.core.grading.rubric import Rubric
from proctor.core.scenarios.answer import AnswerKey, FactType, Polarity
from proctor.core.scenarios.brief import BRIEF_FILE, Brief
from proctor.core.scenarios.document import Fault
from proctor.core.scenarios.recipe import Recipe

_SHORT_WORD = 3
"""Words of a scenario's name as short as "of" and "the" give nothing away."""

_FEW_DIGITS = 3
"""A number of fewer digits stands in many a brief by chance: "the past 10 minutes"."""

_PROMPT = ("prompt",)


def check_words(draft: Draft, brief: Brief, recipe: Recipe | None) -> Iterator[Fault]:
    """Yield the services and the words of the scenario's name that a brief holds."""
    for word in draft.folder.name.split("-"):
        if len(word) > _SHORT_WORD and _holds(brief.prompt, rf"{re.escape(word)}(?:s|es)?"):
            yield draft.fault(BRIEF_FILE, _PROMPT, f"{word!r} is a word of the scenario's name", "say it otherwise")
    for service in recipe.services if recipe else ():
        if _holds(brief.prompt, re.escape(service)):
            yield draft.fault(BRIEF_FILE, _PROMPT, f"names the service {service!r}", "let the agent find it")


def check_leaks(draft: Draft, brief: Brief, key: AnswerKey, rubric: Rubric) -> Iterator[Fault]:
    """Yield what a brief tells of the answer: facts, causes, and whole findings."""
    for name, value in _literals(key, rubric.facts).items():
        if _holds(brief.prompt, re.escape(value)):
            yield draft.fault(BRIEF_FILE, _PROMPT, f"holds the fact `{name}`, {value!r}", "let the agent find it")
    labels = rubric.clauses.find(" ".join(brief.prompt.lower().split()))
    for line in key.criteria:
        if line.polarity is Polarity.NEGATIVE:
            continue
        if f"subject:{line.id}" in labels:
            yield draft.fault(
                BRIEF_FILE, _PROMPT, f"names what `{line.id}` asks for", "say what is seen, not what causes it"
            )
        elif (words := find_statement(rubric, line.id, brief.prompt)) is not None:
            yield draft.fault(BRIEF_FILE, _PROMPT, f"says what `{line.id}` asks for: {words!r}", "leave it out")
    if check_answer(rubric, brief.prompt).score > 0:
        yield draft.fault(BRIEF_FILE, _PROMPT, "scores when it is given back as the answer", "leave the finding out")


def _literals(key: AnswerKey, facts: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in facts.items()
        if key.facts[name].type is FactType.TEXT or sum(map(str.isdigit, value)) >= _FEW_DIGITS
    }


def _holds(text: str, pattern: str) -> bool:
    return re.search(rf"(?<![\w-]){pattern}(?![\w-])", text, re.IGNORECASE) is not None
