"""A scenario folder: four files, each for other eyes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from proctor.core.scenarios.answer import AnswerKey, load_answer
from proctor.core.scenarios.brief import Brief, load_brief
from proctor.core.scenarios.policies import Policies, load_policies
from proctor.core.scenarios.recipe import Recipe, load_recipe
from proctor.core.seeding.identity import WRITTEN_SEED
from proctor.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Scenario:
    """A whole scenario; only tools for authors ever hold one.

    Attributes:
        name: the folder's name.
        brief: the agent's side.
        recipe: what is seeded.
        answer: the graders' side.
        policies: the scripted models' side.
    """

    name: str
    brief: Brief
    recipe: Recipe
    answer: AnswerKey
    policies: Policies


def load_scenario(folder: Path, seed: int = WRITTEN_SEED) -> Scenario:
    """Read all four files as a dataset seed has them.

    Raises:
        InvalidInput: one is missing or not what it should be.
    """
    return Scenario(
        name=folder.name,
        brief=load_brief(folder, seed),
        recipe=load_recipe(folder, seed),
        answer=load_answer(folder, seed),
        policies=load_policies(folder, seed),
    )


def find_scenario(scenarios: Path, name: str) -> Path:
    """Return a scenario's folder.

    Raises:
        InvalidInput: there is none of that name; the message lists those that there are.
    """
    names = list_scenarios(scenarios)
    if name not in names:
        raise InvalidInput(f"scenario {name!r}: not in {scenarios}: it holds {', '.join(names) or 'none'}")
    return scenarios / name


def list_scenarios(scenarios: Path) -> tuple[str, ...]:
    """Return the names of the scenarios in a folder of scenarios, sorted."""
    if not scenarios.is_dir():
        return ()
    return tuple(sorted(path.parent.name for path in scenarios.glob("*/brief.yaml")))
