"""Policies: what scripted models do in a scenario, to show that instrument and rubric work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, model_validator

from proctor.core.agents.markers import find_markers, marker_names
from proctor.core.scenarios.document import Document, FactName, Slug
from proctor.core.scenarios.variants import load_part
from proctor.core.seeding.identity import WRITTEN_SEED

POLICIES_FILE = "policies.yaml"
ANCHOR_MARKER = "anchor"
"""Always known: the scripted model reads it in the prompt, as any agent must."""

Query = Annotated[str, StringConstraints(min_length=6, max_length=10_000)]


class Step(Document):
    """One call of the server's SQL tool."""

    query: Query = Field(
        description="One SELECT over unqualified table names that returns one string with markers, such as "
        "concat('<<failures', '=', toString(count()), '>>'). `<<anchor>>`, and markers of earlier steps, are put in."
    )
    markers: list[FactName] = Field(min_length=1, max_length=40, description="The markers that the string holds.")

    @model_validator(mode="after")
    def _query_is_no_reading(self) -> Self:
        """A server that repeats the query in its reply must not be read as if it had answered it."""
        found = find_markers(self.query)
        if found:
            raise ValueError(
                f"the query itself reads like the marker {min(found)!r}: split it, concat('<<name', '=', …)"
            )
        return self


class ScriptedPolicy(Document):
    """Queries, then an answer made of what they returned."""

    steps: list[Step] = Field(default=[], max_length=25, description="Calls, in order.")
    answer: str = Field(
        min_length=1, max_length=20_000, description="The answer; `<<name>>` is replaced by the marker's value."
    )

    @model_validator(mode="after")
    def _only_known_markers(self) -> Self:
        known = {ANCHOR_MARKER}
        for index, step in enumerate(self.steps):
            unknown = marker_names(step.query) - known
            if unknown:
                raise ValueError(f"steps.{index}.query: no earlier step returns {min(unknown)!r}")
            known.update(step.markers)
        unknown = marker_names(self.answer) - known
        if unknown:
            raise ValueError(f"answer: no step returns {min(unknown)!r}")
        return self


class Policies(Document):
    """What the scripted models of this scenario do."""

    oracle: ScriptedPolicy = Field(description="The known-good investigation: the control that must score high.")
    impostors: dict[Slug, ScriptedPolicy] = Field(
        default={}, max_length=10, description="Plausible wrong investigations, by name of the policy."
    )


def load_policies(folder: Path, seed: int = WRITTEN_SEED) -> Policies:
    """Read the policies of a scenario folder as a dataset seed has them.

    Raises:
        InvalidInput: there are none, or they are no policies.
    """
    return load_part(folder, POLICIES_FILE, Policies, seed)


def find_policies(folder: Path, seed: int = WRITTEN_SEED) -> Policies | None:
    """Return a scenario's policies; None if it has none, as it may if no cell is scripted.

    Raises:
        InvalidInput: they are no policies.
    """
    return load_policies(folder, seed) if (folder / POLICIES_FILE).is_file() else None


def read_policies(folder: Path, seed: int) -> dict[str, Any]:
    """Return a scenario's policies as plain values; empty if it has none, as it may if no cell is scripted.

    Raises:
        InvalidInput: they are no policies.
    """
    policies = find_policies(folder, seed)
    return {} if policies is None else policies.model_dump(mode="json")
