"""Reading the files of a scenario folder: closed models, and errors that name file, line, field and fix."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from proctor.errors import InvalidInput

MAX_DOCUMENT_BYTES = 1_000_000
"""The largest shipped file has some tens of kilobytes; a parser is not handed more than twenty times that."""

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
"""A name that may stand in a path, a label and a table of results."""

FactName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
"""A fact or a marker; what stands between ``<<`` and ``>>``."""


class Document(BaseModel):
    """Base of every part of brief, answer and policies: unknown fields are refused, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


DocumentT = TypeVar("DocumentT", bound=Document)


def parse_document(text: str, model: type[DocumentT], source: str) -> DocumentT:
    """Read one document.

    Raises:
        InvalidInput: the text is no such document; the message names line and field of the first fault.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    if len(text.encode()) > MAX_DOCUMENT_BYTES:
        raise InvalidInput(f"{source}: larger than {MAX_DOCUMENT_BYTES} bytes")
    try:
        return model.model_validate(YAML(typ="safe", pure=True).load(StringIO(text)))
    except YAMLError as error:
        raise InvalidInput(f"{source}: not YAML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or model.__name__.lower()
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise InvalidInput(f"{source}:{_line_of(text, first['loc'])}: {field}: {first['msg']}{more}") from error


def load_document(path: Path, model: type[DocumentT]) -> DocumentT:
    """Read one file of a scenario folder.

    Raises:
        InvalidInput: there is none, or it is not what it should be.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{model.__name__.lower()} {path}: can't be read: {error}") from error
    return parse_document(text, model, str(path))


def _line_of(text: str, location: tuple[int | str, ...]) -> int:
    """Return the line of a field, or of the nearest thing around it that the file holds."""
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap, CommentedSeq

    node = YAML(typ="rt", pure=True).load(StringIO(text))
    line = 0
    for part in location:
        if isinstance(node, CommentedMap) and part in node:
            line = node.lc.key(part)[0]
        elif isinstance(node, CommentedSeq) and isinstance(part, int) and part < len(node):
            line = node.lc.item(part)[0]
        else:
            break
        node = node[part]
    return line + 1
