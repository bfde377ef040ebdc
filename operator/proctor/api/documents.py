"""YAML text → plain values that remember their lines; everything that makes YAML dangerous or ambiguous is refused.

Read event by event, so that depth and size are known before anything is built: no recursion that a file could drive
into the ground, no alias that multiplies, no tag that builds objects, no key given twice. Plain words follow YAML 1.2's
core schema (``on`` and ``no`` are text), and instants stay text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from proctor.errors import InvalidInput

MAX_BYTES = 256 * 1024
"""A suite is copied into a ConfigMap and into annotations of at most this size; real ones are a few KiB."""
MAX_NODES = 20_000
MAX_DEPTH = 32

FieldPath = tuple[str | int, ...]

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,4})?")
_STRING_TAGS = frozenset({"tag:yaml.org,2002:str", "!"})


class DocumentError(InvalidInput):
    """Text that is no document.

    Args:
        message: what is wrong, and how to mend it.
        line: where, from 1.
    """

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(slots=True)
class Document:
    """A document's values and where they stand.

    Attributes:
        value: plain dicts, lists, text, numbers, booleans and None.
        lines: line of each field, from 1, by its path.
    """

    value: Any
    lines: dict[FieldPath, int]

    def line_of(self, path: FieldPath) -> int:
        """Return the line of a field, or of the closest parent that the text has."""
        for length in range(len(path), -1, -1):
            line = self.lines.get(path[:length])
            if line is not None:
                return line
        return 1


@dataclass(slots=True)
class _Open:
    """A mapping or list that is being read."""

    value: dict[str, Any] | list[Any]
    path: FieldPath
    anchor: str | None
    nodes_before: int
    key: str | None = None
    used: dict[str, int] = field(default_factory=dict)


def parse_document(text: str) -> Document:
    """Read one YAML document.

    Raises:
        DocumentError: it is too large or too deep, is no YAML, or uses what is refused.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise DocumentError(f"larger than {MAX_BYTES // 1024} KiB: split it, or move long text out of it")
    reader = _Reader()
    try:
        for event in _events(text):
            reader.take(event)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        raise DocumentError(f"not valid YAML: {error.problem}", 1 if mark is None else mark.line + 1) from error
    except YAMLError as error:
        raise DocumentError(f"not valid YAML: {str(error).splitlines()[0]}") from error
    if reader.documents == 0:
        raise DocumentError("empty: nothing is defined")
    return Document(reader.root, reader.lines)


def _events(text: str) -> Iterator[Event]:
    yield from YAML(typ="safe", pure=True).parse(text)


class _Reader:
    """Builds values from events, and counts what it builds."""

    def __init__(self) -> None:
        self.root: Any = None
        self.lines: dict[FieldPath, int] = {}
        self.documents = 0
        self._stack: list[_Open] = []
        self._nodes = 0
        self._anchors: dict[str, tuple[Any, int]] = {}

    def take(self, event: Event) -> None:
        """Add one event."""
        line = event.start_mark.line + 1
        match event:
            case DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    raise DocumentError("more than one document: keep one per file", line)
            case AliasEvent():
                self._alias(event, line)
            case ScalarEvent():
                self._scalar(event, line)
            case MappingStartEvent():
                self._open({}, event, line)
            case SequenceStartEvent():
                self._open([], event, line)
            case MappingEndEvent() | SequenceEndEvent():
                self._close()
            case _:
                pass

    def _count(self, nodes: int, line: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise DocumentError(f"more than {MAX_NODES} values, aliases included: split it", line)

    def _open(
        self, value: dict[str, Any] | list[Any], event: MappingStartEvent | SequenceStartEvent, line: int
    ) -> None:
        if event.tag is not None:
            raise DocumentError(f"tag {event.tag} is not supported: remove it", line)
        if len(self._stack) >= MAX_DEPTH:
            raise DocumentError(f"nested deeper than {MAX_DEPTH} levels: flatten it", line)
        before = self._nodes
        self._count(1, line)
        path = self._place(value, line)
        self._stack.append(_Open(value, path, event.anchor, before))

    def _close(self) -> None:
        done = self._stack.pop()
        if done.anchor is not None:
            self._anchors[done.anchor] = (done.value, self._nodes - done.nodes_before)

    def _alias(self, event: AliasEvent, line: int) -> None:
        if event.anchor not in self._anchors:
            raise DocumentError(f"alias *{event.anchor} has no anchor before it: write the value out", line)
        value, nodes = self._anchors[event.anchor]
        self._count(nodes, line)
        self._place(value, line)

    def _scalar(self, event: ScalarEvent, line: int) -> None:
        self._count(1, line)
        if event.tag is not None and event.tag not in _STRING_TAGS:
            raise DocumentError(f"tag {event.tag} is not supported: remove it", line)
        holder = self._stack[-1] if self._stack else None
        if holder is not None and isinstance(holder.value, dict) and holder.key is None:
            self._key(holder, event.value, line)
            return
        plain = event.tag is None and event.implicit[0]
        value = resolve_plain(event.value) if plain else event.value
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1)
        self._place(value, line)

    def _key(self, holder: _Open, key: str, line: int) -> None:
        if key == "<<":
            raise DocumentError("merge key << is not supported: write the fields out", line)
        if key in holder.used:
            raise DocumentError(f"key {key!r} is already given on line {holder.used[key]}: remove one", line)
        holder.used[key] = line
        holder.key = key
        self.lines[(*holder.path, key)] = line

    def _place(self, value: Any, line: int) -> FieldPath:  # noqa: ANN401 - any plain value
        if not self._stack:
            self.root = value
            self.lines[()] = line
            return ()
        holder = self._stack[-1]
        if isinstance(holder.value, list):
            holder.value.append(value)
            path: FieldPath = (*holder.path, len(holder.value) - 1)
        elif holder.key is None:
            raise DocumentError("a key has to be plain text", line)
        else:
            holder.value[holder.key] = value
            path = (*holder.path, holder.key)
            holder.key = None
        self.lines.setdefault(path, line)
        return path


def resolve_plain(text: str) -> str | int | float | bool | None:
    """Return what an unquoted word stands for, by YAML 1.2's core schema."""
    if text in _NULLS:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
