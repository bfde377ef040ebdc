"""The files of a scenario folder as they are, with all that is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from proctor.core.scenarios.answer import AnswerKey
from proctor.core.scenarios.brief import BRIEF_FILE, Brief
from proctor.core.scenarios.document import Fault, Faulty, find_line, parse_document
from proctor.core.scenarios.folder import Scenario
from proctor.core.scenarios.policies import POLICIES_FILE, Policies
from proctor.core.scenarios.recipe import Recipe
from proctor.core.scenarios.redraw import Redraw
from proctor.core.scenarios.reference import REFERENCE_FILE, Reference
from proctor.core.scenarios.variants import Variants
from proctor.core.seeding.identity import ANSWER_FILE, RECIPE_FILE, VARIANTS_FILE, WRITTEN_SEED
from proctor.errors import InvalidInput

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass
class Draft:
    """A scenario that may be at fault: what can be read of it.

    Attributes:
        folder: the scenario's folder.
        texts: the files' texts, by name.
        faults: what is wrong with them, as documents.
        brief: the agent's side; as all others None where its file is at fault.
        recipe: what is seeded.
        answer: the graders' side.
        policies: the scripted models' side.
        reference: the facts of one dataset.
        variants: what dataset seeds redraw; None too where there is no such file.
        seed: the dataset seed that has the documents so.
        redraw: what it changed of the files; None if it has them as they are written.
    """

    folder: Path
    seed: int = WRITTEN_SEED
    texts: dict[str, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    brief: Brief | None = None
    recipe: Recipe | None = None
    answer: AnswerKey | None = None
    policies: Policies | None = None
    reference: Reference | None = None
    variants: Variants | None = None
    redraw: Redraw | None = None

    def scenario(self) -> tuple[Scenario, Reference]:
        """Return the whole scenario.

        Raises:
            InvalidInput: a file is missing or at fault.
        """
        if not (self.brief and self.recipe and self.answer and self.policies and self.reference):
            raise InvalidInput(f"scenario {self.folder}: {self.faults[0] if self.faults else 'not whole'}")
        return Scenario(self.folder.name, self.brief, self.recipe, self.answer, self.policies), self.reference

    def fault(self, file: str, location: Sequence[int | str], message: str, fix: str = "") -> Fault:
        """Return a fault in one of the files."""
        written = self.redraw.written(location) if self.redraw else location
        place = ".".join(map(str, written)) or file.removesuffix(".yaml")
        line = find_line(self.texts[file], written) if file in self.texts else 1
        return Fault(str(self.folder / file), line, place, self._with_seed(message), fix)

    def add(self, faults: Iterable[Fault]) -> None:
        """Keep the faults of a file."""
        self.faults += [replace(fault, message=self._with_seed(fault.message)) for fault in faults]

    def _with_seed(self, message: str) -> str:
        return f"dataset seed {self.seed}: {message}" if self.redraw else message


def read_draft(folder: Path, seed: int = WRITTEN_SEED) -> Draft:
    """Read what can be read of a scenario folder, as a dataset seed has it."""
    draft = Draft(folder, seed)
    if (folder / VARIANTS_FILE).exists():
        draft.variants = _read(draft, VARIANTS_FILE, Variants)
    if draft.variants and seed != WRITTEN_SEED:
        draft.redraw = draft.variants.draw(seed)
    draft.brief = _read(draft, BRIEF_FILE, Brief)
    draft.recipe = _read(draft, RECIPE_FILE, Recipe)
    draft.answer = _read(draft, ANSWER_FILE, AnswerKey)
    draft.policies = _read(draft, POLICIES_FILE, Policies)
    draft.reference = _read(draft, REFERENCE_FILE, Reference)
    return draft


def _read(draft: Draft, file: str, model: type[ModelT]) -> ModelT | None:
    path = draft.folder / file
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        says = error.strerror if isinstance(error, OSError) else "not UTF-8"
        draft.faults.append(
            Fault(str(path), 1, model.__name__.lower(), f"can't be read: {says}", "`proctor scenario new` shows one")
        )
        return None
    try:
        document = parse_document(text, model, str(path), draft.redraw)
    except Faulty as error:
        draft.add(error.faults)
        return None
    draft.texts[file] = text
    return document
