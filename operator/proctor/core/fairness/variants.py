"""Whether a scenario's variants are another surface of the same scenario, and no other scenario."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proctor.core.fairness.folder import Draft
from proctor.core.scenarios.document import Fault, read_tree
from proctor.core.scenarios.redraw import Misplaced, Redraw, find_value
from proctor.core.scenarios.reference import REFERENCE_FILE
from proctor.core.scenarios.variants import Variants, read_place
from proctor.core.seeding.identity import RECIPE_FILE, VARIANTS_FILE, WRITTEN_SEED

CHECKED_SEEDS = (WRITTEN_SEED, 1, 2)
"""Of a scenario that has variants: as it is written, and redrawn twice."""

_Location = tuple[str | int, ...]


def choose_seeds(draft: Draft) -> tuple[int, ...]:
    """Return the dataset seeds with which a scenario is looked at."""
    if draft.variants:
        return CHECKED_SEEDS
    return (draft.reference.seed if draft.reference else WRITTEN_SEED,)


def check_variants(draft: Draft, variants: Variants) -> Iterator[Fault]:
    """Yield words that stand nowhere, names that stand for something else already, and places that are none."""
    if draft.recipe:
        yield from _check_words(draft, variants)
        tree = read_tree(draft.texts[RECIPE_FILE])
        for location, place, kind in _located(variants):
            try:
                find_value(tree, read_place(place), kind)
            except Misplaced as error:
                yield draft.fault(VARIANTS_FILE, location, f"{place}: {error}", "correct the place")
    if draft.reference and draft.reference.seed != WRITTEN_SEED:
        message = f"is {draft.reference.seed}, by which names are redrawn"
        yield draft.fault(REFERENCE_FILE, ("seed",), message, f"record the facts of seed {WRITTEN_SEED}")


def _check_words(draft: Draft, variants: Variants) -> Iterator[Fault]:
    written = [*variants.words, *(word for group in variants.shuffled for word in group)]
    held = _find_words(written, draft.texts.get(RECIPE_FILE, ""))
    for word in variants.words:
        if word.lower() not in held:
            yield draft.fault(
                VARIANTS_FILE, ("words", word), "stands nowhere in recipe.yaml", "remove it, or correct it"
            )
    for place, group in enumerate(variants.shuffled):
        for word in group:
            if word.lower() not in held:
                message = f"{word!r} stands nowhere in recipe.yaml"
                yield draft.fault(VARIANTS_FILE, ("shuffled", place), message, "remove it, or correct it")
    others = [word for listed in variants.words.values() for word in listed]
    held = frozenset().union(
        *(_find_words(others, text) for file, text in draft.texts.items() if file != VARIANTS_FILE)
    )
    for word, listed in variants.words.items():
        for other in listed:
            if other.lower() in held:
                message = f"{other!r} stands in the files already: two things would have one name"
                yield draft.fault(VARIANTS_FILE, ("words", word), message, "choose another")


def _find_words(words: Sequence[str], text: str) -> frozenset[str]:
    return Redraw({word: word for word in words}).holds(text)


def _located(variants: Variants) -> Iterator[tuple[_Location, str, type]]:
    for name, value in variants.values.items():
        kind = type(value.of[0])
        yield from ((("values", name, "places", index), place, kind) for index, place in enumerate(value.places))
    for name, one in variants.times.items():
        yield from ((("times", name, "places", index), place, str) for index, place in enumerate(one.places))
    for row, group in enumerate(variants.sizes):
        yield from ((("sizes", row, index), place, int) for index, place in enumerate(group))
