"""A redraw: the words, times and sizes that a scenario's documents have for one dataset seed.

It works on parsed documents: values are put in at their places, words are replaced as whole words in texts and keys.
Nothing is expanded: a word that is put in is plain (see `variants.Word`), and is never looked at again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from proctor.core.scenarios.recipe_terms import NANOSECONDS, parse_duration
from proctor.errors import InvalidInput

RECIPE = "recipe"
"""The document that has places of times and sizes."""

Place = tuple[str | int, ...]
"""Keys and places in lists, from a document's root."""


class Misplaced(InvalidInput):
    """A place that a document lacks, or where something else stands.

    Args:
        place: the place.
        message: what is wrong with it.
    """

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(message)
        self.place, self.message = place, message


@dataclass(frozen=True)
class Redraw:
    """What one dataset seed changes.

    Attributes:
        words: the word in place of each.
        moved: by how many nanoseconds the recipe's spans of time are moved, by place.
        dealt: for places of whole numbers in the recipe, the place from which each takes its number.
        values: what the recipe has elsewhere, by place.
    """

    words: Mapping[str, str]
    moved: Mapping[Place, int] = field(default_factory=dict)
    dealt: Mapping[Place, Place] = field(default_factory=dict)
    values: Mapping[Place, int | str] = field(default_factory=dict)

    def change(self, document: str, tree: Any) -> Any:  # noqa: ANN401 - whatever a YAML file may hold
        """Return a parsed document as the seed has it.

        Args:
            document: what it is; times and sizes are those of the `RECIPE`.
            tree: the document, as the file says it.

        Raises:
            Misplaced: it lacks one of the places.
        """
        return self._change_words(self._change_values(tree) if document == RECIPE else tree, {})

    def _change_words(self, tree: Any, seen: dict[int, Any]) -> Any:  # noqa: ANN401 - whatever a YAML file may hold
        """Change texts and keys; what an anchor names many times is changed once, and a loop is left to the model."""
        if isinstance(tree, str):
            return self._words.sub(lambda found: self._forms[found[0]], tree)
        if not isinstance(tree, dict | list):
            return tree
        if id(tree) not in seen:
            seen[id(tree)] = tree
            if isinstance(tree, dict):
                pairs = tree.items()
                seen[id(tree)] = {self._change_words(key, seen): self._change_words(one, seen) for key, one in pairs}
            else:
                seen[id(tree)] = [self._change_words(one, seen) for one in tree]
        return seen[id(tree)]

    def _change_values(self, recipe: Any) -> Any:  # noqa: ANN401 - whatever a YAML file may hold
        changed: dict[Place, int | str] = {
            place: _shift(find_value(recipe, place, str), by, place) for place, by in self.moved.items()
        }
        changed |= {place: find_value(recipe, source, int) for place, source in self.dealt.items()}
        for place, value in self.values.items():
            find_value(recipe, place, type(value))
            changed[place] = value
        for place, value in changed.items():
            recipe = _put(recipe, place, value)
        return recipe

    def written(self, location: Sequence[str | int]) -> Place:
        """Return where the file says what stands at a place of the redrawn document."""
        return tuple(self._written.get(part, part) if isinstance(part, str) else part for part in location)

    def holds(self, text: str) -> frozenset[str]:
        """Return the words of this redraw that stand in a text, in small letters."""
        return frozenset(found.lower() for found in self._words.findall(text))

    @cached_property
    def _forms(self) -> dict[str, str]:
        """Words as they are, in small letters (as patterns have them), and as a sentence begins with them."""
        forms = {old.lower(): new.lower() for old, new in self.words.items()}
        forms |= {old[0].upper() + old[1:]: new[0].upper() + new[1:] for old, new in self.words.items()}
        return forms | dict(self.words)

    @cached_property
    def _words(self) -> re.Pattern[str]:
        # A pattern's \b ends in a letter, but ends no word. Longer words first: no word is cut out of another.
        listed = "|".join(re.escape(form) for form in sorted(self._forms, key=len, reverse=True)) or r"(?!)"
        return re.compile(rf"(?:(?<=\\b)|(?<![\w-]))(?:{listed})(?![\w-])")

    @cached_property
    def _written(self) -> dict[str, str]:
        return {new: old for old, new in self.words.items()}


def find_value(tree: Any, place: Place, kind: type) -> Any:  # noqa: ANN401 - whatever a YAML file may hold
    """Return what stands at a place.

    Raises:
        Misplaced: there is nothing, or nothing of that kind.
    """
    node = tree
    for part in place:
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            raise Misplaced(place, "the recipe has no such place") from None
    if type(node) is not kind:
        raise Misplaced(place, f"there is no {'text' if kind is str else 'whole number'}")
    return node


def _shift(text: str, by: int, place: Place) -> str:
    try:
        moved = parse_duration(text) + by
    except ValueError as error:
        raise Misplaced(place, str(error)) from None
    unit = next(unit for unit in ("h", "m", "s", "ms", "us", "ns") if moved % NANOSECONDS[unit] == 0)
    return f"{moved // NANOSECONDS[unit]}{unit}"


def _put(tree: Any, place: Place, value: str | int) -> Any:  # noqa: ANN401 - whatever a YAML file may hold
    """Return a copy of a tree with another value at a place that is there."""
    if not place:
        return value
    first, rest = place[0], place[1:]
    copied: Any = dict(tree) if isinstance(tree, dict) else list(tree)
    copied[first] = _put(copied[first], rest, value)
    return copied
