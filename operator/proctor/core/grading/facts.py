"""Facts in patterns: how an answer may write a value that was queried from the dataset."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

import re2

from proctor.core.grading.near import near_number
from proctor.core.scenarios.answer import AnswerKey, Fact, FactType
from proctor.errors import InvalidInput

FactValues = Mapping[str, int | str | Decimal]

_REFERENCE = re.compile(r"<<([a-z][a-z0-9_]{0,39})>>")
_WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip


def check_facts(key: AnswerKey, values: FactValues) -> dict[str, str]:
    """Return the value of each fact of a key, as text.

    Raises:
        InvalidInput: one is missing, empty, or not of its type.
    """
    texts = {}
    for name, fact in key.facts.items():
        if name not in values or str(values[name]) == "":
            raise InvalidInput(f"fact {name!r}: the dataset has no value for it")
        text = str(values[name])
        try:
            number = None if fact.type is FactType.TEXT else Decimal(text)
        except InvalidOperation as error:
            raise InvalidInput(f"fact {name!r}: {text!r} is not of type {fact.type}") from error
        if fact.type is FactType.INTEGER and number != number.to_integral_value():  # type: ignore[union-attr] # a number here
            raise InvalidInput(f"fact {name!r}: {text!r} is not of type {fact.type}")
        texts[name] = text
    return texts


def fill_text(text: str, facts: Mapping[str, str]) -> str:
    """Put facts into a sentence or an answer."""
    return _REFERENCE.sub(lambda place: facts.get(place[1], place[0]), text)


def expand_terms(key: AnswerKey, facts: Mapping[str, str]) -> dict[str, str]:
    """Return the pattern that stands for each term and fact; a term may use facts and the terms before it."""
    known = {name: _fact_pattern(key.facts[name], text) for name, text in facts.items()}
    for name, pattern in key.terms.items():
        known[name] = f"(?:{fill_pattern(pattern, known)})"
    return known


def fill_pattern(pattern: str, known: Mapping[str, str]) -> str:
    """Put the patterns of terms and facts into a pattern.

    Raises:
        InvalidInput: the pattern names a term that stands after it.
    """

    def pattern_of(place: re.Match[str]) -> str:
        if place[1] not in known:
            raise InvalidInput(f"pattern {pattern!r}: term {place[1]!r} must be declared before it is used")
        return known[place[1]]

    return _REFERENCE.sub(pattern_of, pattern)


def _fact_pattern(fact: Fact, text: str) -> str:
    if fact.within:
        return near_number(Decimal(text), fact.within)
    match fact.type:
        case FactType.TEXT:
            return str(re2.escape(text.lower()))
        case FactType.DECIMAL:
            return rf"\b{re2.escape(text)}\b"
        case FactType.INTEGER:
            number = int(Decimal(text))
            forms = {str(number), f"{number:,}"}
            if 0 <= number < len(_WORDS):
                forms.add(_WORDS[number])
            return rf"\b(?:{'|'.join(re2.escape(form) for form in sorted(forms))})(?:\b|x\b)"
