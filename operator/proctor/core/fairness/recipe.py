"""Whether a recipe makes rows, and only rows within its world."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal

from pydantic import BaseModel

from proctor.core.fairness.folder import Draft
from proctor.core.scenarios.document import Fault
from proctor.core.scenarios.recipe import Recipe
from proctor.core.scenarios.recipe_draws import Ticks
from proctor.core.scenarios.recipe_terms import Within, parse_duration
from proctor.core.seeding.identity import RECIPE_FILE
from proctor.core.seeding.plan import compile_plan
from proctor.core.seeding.scope import RecipeFault
from proctor.errors import InvalidInput

_ANCHOR = datetime(2000, 1, 1, tzinfo=UTC)

Location = tuple[str | int, ...]


def check_recipe(draft: Draft, recipe: Recipe) -> Iterator[Fault]:
    """Yield what is wrong with a recipe that parses: what can't be compiled, and times outside the world."""
    try:
        compile_plan(recipe, seed=0, anchor=_ANCHOR, volume=Decimal(1))
    except RecipeFault as error:
        yield draft.fault(RECIPE_FILE, error.place, str(error), "declare it, or correct the draw")
    except InvalidInput as error:
        yield draft.fault(RECIPE_FILE, (), str(error), "correct the recipe")
    begin = parse_duration(recipe.window)
    for location, start, until in _stretches(recipe, ()):
        if parse_duration(start) < -begin or parse_duration(until) > 0:
            yield draft.fault(
                RECIPE_FILE,
                location,
                f"{start} to {until} is not within the world, which is -{recipe.window} to 0s",
                "move it, or make `window` longer",
            )


def _stretches(node: object, location: Location) -> Iterator[tuple[Location, str, str]]:
    """Yield every stretch of time that a recipe names, with its place."""
    match node:
        case Within() | Ticks():
            yield location, node.start, node.until
        case BaseModel():
            for name, field in type(node).model_fields.items():
                yield from _stretches(getattr(node, name), (*location, field.alias or name))
        case dict():
            for key, value in node.items():
                yield from _stretches(value, (*location, key))
        case list() | tuple():
            for place, value in enumerate(node):
                yield from _stretches(value, (*location, place))
        case _:
            pass
