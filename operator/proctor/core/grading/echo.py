"""Sentences of the brief that an answer gives back: they say nothing, so they are dropped before checks (rule 2)."""

from __future__ import annotations

from proctor.core.grading.answer_text import normalise_text

_RUN = 3
"""Words that are compared at once: enough for order to matter, few enough that a changed word costs three runs."""

_SHARE = 0.7
"""Of a sentence's runs that also stand in the brief: above it, the sentence is the brief's own with a word changed."""

_LEAST_WORDS = 5


class Echo:
    """Recognises sentences of one text in another.

    Args:
        told: what the agent was told.
    """

    def __init__(self, told: str) -> None:
        words = _words(normalise_text(told))
        self._told = f" {' '.join(words)} "
        self._runs = _runs(words)

    def __call__(self, sentence: str) -> bool:
        """Whether a sentence is what the agent was told, and no finding."""
        words = _words(sentence)
        if not words:
            return False
        if len(words) >= _LEAST_WORDS and f" {' '.join(words)} " in self._told:
            return True
        runs = _runs(words)
        return len(words) > _LEAST_WORDS and len(runs & self._runs) > _SHARE * len(runs)


_SIGNS = str.maketrans({chr(code): " " for code in range(128) if not chr(code).isalnum()})


def _words(text: str) -> list[str]:
    return text.lower().translate(_SIGNS).split()


def _runs(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[index : index + _RUN]) for index in range(len(words) - _RUN + 1)}
