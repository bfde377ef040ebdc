"""Reading the files of a scenario folder: closed models, and errors that name file, line, field and fix."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from proctor.core.scenarios.redraw import Misplaced, Redraw
from proctor.errors import InvalidInput

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails
    from ruamel.yaml.nodes import Node

MAX_DOCUMENT_BYTES = 1_000_000
"""The largest shipped file has some tens of kilobytes; a parser is not handed more than twenty times that."""

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
"""A name that may stand in a path, a label and a table of results."""

FactName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
"""A fact or a marker; what stands between ``<<`` and ``>>``."""


class Document(BaseModel):
    """Base of every part of brief, answer and policies: unknown fields are refused, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


ModelT = TypeVar("ModelT", bound=BaseModel)

_PREFIX = "Value error, "
_PLACE = re.compile(r"([a-z_]+(?:\.[A-Za-z0-9_-]+)+): ")
"""How a check of a whole document says which part it found at fault."""

_FIXES = {
    "extra_forbidden": "remove it, or correct its name",
    "missing": "add it",
    "union_tag_not_found": "write one of these keys",
    "less_than_equal": "lower it",
    "greater_than_equal": "raise it",
}
_FIX = "correct it"


_MISPLACED = "correct the place in variants.yaml"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something in a scenario folder that has to change.

    Attributes:
        file: the file.
        line: its line, counted from 1.
        place: the field, such as ``criteria.cause.fires``.
        message: what is wrong.
        fix: what to do.
    """

    file: str
    line: int
    place: str
    message: str
    fix: str = ""

    def __str__(self) -> str:
        """``file:line: place: message; fix``."""
        return f"{self.file}:{self.line}: {self.place}: {self.message}" + (f"; {self.fix}" if self.fix else "")


class Faulty(InvalidInput):
    """A document that is not what it should be.

    Args:
        faults: what is wrong with it; at least one.
    """

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        first, more = faults[0], len(faults) - 1
        super().__init__(f"{first}" + (f" (and {more} more)" if more else ""))
        self.faults = faults


def parse_document(text: str, model: type[ModelT], source: str, redraw: Redraw | None = None) -> ModelT:
    """Read one document.

    Args:
        text: the document.
        model: what it should be.
        source: the file's name.
        redraw: what is other than in the text; faults are told at the places of the text.

    Raises:
        Faulty: the text is no such document; the message names line, field and fix of the first fault.
    """
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    name = model.__name__.lower()
    if len(text.encode()) > MAX_DOCUMENT_BYTES:
        raise Faulty((Fault(source, 1, name, f"larger than {MAX_DOCUMENT_BYTES} bytes", "shorten it"),))
    try:
        tree = read_tree(text)
        return model.model_validate(tree if redraw is None else redraw.change(name, tree))
    except YAMLError as error:
        mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
        says = (error.problem if isinstance(error, MarkedYAMLError) else None) or str(error)
        line = mark.line + 1 if mark else 1
        raise Faulty((Fault(source, line, name, f"not YAML: {says}", "correct the syntax"),)) from error
    except ValidationError as error:
        raise Faulty(_read_faults(text, source, name, error.errors(), redraw=redraw)) from error
    except Misplaced as error:
        fault = Fault(source, find_line(text, error.place), ".".join(map(str, error.place)), error.message, _MISPLACED)
        raise Faulty((fault,)) from error


@lru_cache(maxsize=8)
def read_tree(text: str) -> Any:  # noqa: ANN401 - whatever a YAML file may hold
    """Return what a YAML text says, as plain values: to be read only, as whoever asks again gets the same.

    Raises:
        YAMLError: it is none.
    """
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).load(StringIO(text))


def load_document(path: Path, model: type[ModelT], redraw: Redraw | None = None) -> ModelT:
    """Read one file of a scenario folder.

    Raises:
        InvalidInput: there is none, or it is not what it should be.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{model.__name__.lower()} {path}: can't be read: {error}") from error
    return parse_document(text, model, str(path), redraw)


def find_line(text: str, location: Sequence[int | str]) -> int:
    """Return the line of a field, or of the nearest thing around it that the text holds.

    Args:
        text: the document.
        location: keys and places in lists; an item of a list may be named by its `id` too.
    """
    return _find(text, location)[0]


def _find(text: str, location: Sequence[int | str]) -> tuple[int, tuple[int | str, ...]]:
    """Return the line, and those parts of the location that the text holds: alternatives of a union are no keys."""
    node = _compose(text)
    line, held = 0, []
    for part in location:
        found = _find_child(node, part)
        if found is not None:
            line, node = found
            held.append(part)
    return line + 1, tuple(held)


def _read_faults(
    text: str, source: str, name: str, errors: Sequence[ErrorDetails], *, redraw: Redraw | None
) -> tuple[Fault, ...]:
    """Return one fault per field: where none of several alternatives fits, the first says enough."""
    faults: dict[tuple[int | str, ...], Fault] = {}
    for error in errors:
        location: tuple[int | str, ...] = error["loc"]
        message = error["msg"].removeprefix(_PREFIX)
        named = _PLACE.match(message)
        if named and not location:
            location = tuple(named[1].split("."))
            message = message[named.end() :]
        if redraw is not None:
            location = redraw.written(location)
        line, held = _find(text, location)
        if error["type"] == "missing":
            held = (*held, location[-1])
        place = ".".join(map(str, held)) or name
        faults.setdefault(held, Fault(source, line, place, message, _FIXES.get(error["type"], _FIX)))
    return tuple(faults.values())


@lru_cache(maxsize=8)
def _compose(text: str) -> Node | None:
    from ruamel.yaml import YAML

    node: Node | None = YAML(typ="safe", pure=True).compose(StringIO(text))
    return node


def _find_child(node: Node | None, part: int | str) -> tuple[int, Node] | None:
    from ruamel.yaml.nodes import MappingNode, SequenceNode

    if isinstance(node, MappingNode):
        return next(((key.start_mark.line, value) for key, value in node.value if key.value == str(part)), None)
    if isinstance(node, SequenceNode):
        for place, item in enumerate(node.value):
            named = _find_child(item, "id") if isinstance(item, MappingNode) else None
            if part == place or (named is not None and named[1].value == part):
                return item.start_mark.line, item
    return None
