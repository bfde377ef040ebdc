"""Reading answers that are JSON documents of a closed form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from proctor.core.grading.answer_text import MAX_ANSWER_BYTES
from proctor.core.grading.marks import Mark
from proctor.core.grading.rows import FetchedRows, Question, Refused
from proctor.core.scenarios.answer import Polarity
from proctor.core.scenarios.artifact import ArtifactCheck, TilesExclude

ModelT = TypeVar("ModelT", bound=BaseModel)


class AnswerPart(BaseModel):
    """A part of an answer: closed, and no error about it quotes what an agent wrote."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, hide_input_in_errors=True)


_REASON = 300


def read_json(model: type[ModelT], answer: bytes, what: str) -> ModelT | Refused:
    """Read an answer; whatever is in it, this does not raise.

    Args:
        model: its form.
        answer: the answer, which may stand in a code block.
        what: what it should be, for the reason.
    """
    if len(answer) > MAX_ANSWER_BYTES:
        return Refused(f"it is longer than {MAX_ANSWER_BYTES} bytes")
    text = answer.decode("utf-8", "replace").strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].removeprefix("json").strip()
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole"
        return Refused(f"it is no {what} in JSON: {place}: {first['msg']}"[:_REASON])


class SpoiltTrial:
    """An answer that is not of the form: it asks nothing, and earns nothing.

    Args:
        checks: the answer key's.
        reason: why it is none.
    """

    references: Sequence[Question] = ()
    questions: Sequence[Question] = ()

    def __init__(self, checks: Sequence[ArtifactCheck], reason: str) -> None:
        self._marks = tuple(mark_check(check, met=False, why=reason) for check in checks)

    def mark(self, fetched: FetchedRows) -> tuple[Mark, ...]:
        """Return that nothing is met."""
        del fetched
        return self._marks


def mark_check(check: ArtifactCheck, *, met: bool, why: str) -> Mark:
    """Return the mark of one check."""
    polarity = Polarity.NEGATIVE if isinstance(check, TilesExclude) else Polarity.POSITIVE
    return Mark(check.id, check.weight, polarity, met, why)
