"""An answer as an outline: headings, paragraphs, list items and table rows, each under what it stands under."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import re2

_PARAGRAPH, _TITLE, _ROW, _ITEM_DEPTH = 15, 10, 18, 20
_MAX_TITLE_WORDS = 12
_MAX_INDENT = 40
_MAX_NODES = 4000
_ITEM = re2.compile(r"^([ \t]{0,40})(?:[-*+]|\(?[0-9a-z]{1,2}[.)])[ \t]+")
_RULE = re2.compile(r"^[ \t|:=_*-]+$")
_MARKS = str.maketrans("", "", '*`~"')


@dataclass(frozen=True, slots=True)
class Node:
    """One place of an outline.

    Attributes:
        text: its words, lower case, without marks of lists or emphasis; empty for a table's row.
        cells: of a table's row, pairs of column and cell.
        parent: the number of the node that it stands under; None at the top.
    """

    text: str
    cells: tuple[tuple[str, str], ...]
    parent: int | None


def read_outline(text: str) -> list[Node]:
    """Read a clean answer as an outline, in order."""
    return list(_Reader().nodes(text.lower()))[:_MAX_NODES]


class _Reader:
    """Walks the lines once; holds the paragraph that is growing and the nodes that are open."""

    def __init__(self) -> None:
        self._open: list[tuple[int, int]] = []
        self._count = 0
        self._words: list[str] = []
        self._depth = _PARAGRAPH
        self._last = 0
        self._columns: list[str] = []

    def nodes(self, text: str) -> Iterator[Node]:
        for raw in text.split("\n"):
            line = raw.strip()
            if not line.startswith("|"):
                self._columns = []
            mark = _ITEM.match(raw)
            if not line or line.startswith("```"):
                yield from self._flush()
            elif line.startswith("#"):
                yield from self._flush()
                yield self._node(len(line) - len(line.lstrip("#")), line.lstrip("# "))
            elif line.startswith("|"):
                yield from self._flush()
                yield from self._row(line)
            elif mark is not None:
                yield from self._flush()
                self._depth = _ITEM_DEPTH + min(len(mark.group(1)), _MAX_INDENT)
                self._words = [raw[mark.end() :].strip()]
            else:
                yield from self._plain(line)
        yield from self._flush()

    def _plain(self, line: str) -> Iterator[Node]:
        bold = line.startswith(("**", "__")) and line.endswith(("**", "__"))
        titled = (bold or line.rstrip("*_ ").endswith(":")) and len(line.split()) <= _MAX_TITLE_WORDS
        if titled and (not self._words or self._depth < _ITEM_DEPTH):
            yield from self._flush()
            yield self._node(_TITLE, line)
            return
        if not self._words:
            # What follows a list stands beside the list's title, not under it.
            self._depth = _TITLE if self._last >= _ITEM_DEPTH else _PARAGRAPH
        self._words.append(line)

    def _flush(self) -> Iterator[Node]:
        if self._words:
            words, self._words = " ".join(self._words), []
            yield self._node(self._depth, words)

    def _row(self, line: str) -> Iterator[Node]:
        if _RULE.match(line) is not None:
            return
        cells = [cell.strip() for cell in line.translate(_MARKS).strip("|").split("|")]
        if not self._columns:
            self._columns = cells
            return
        columns = [*self._columns, *[""] * len(cells)]
        yield self._node(_ROW, "", tuple(zip(columns, cells, strict=False)))

    def _node(self, depth: int, text: str, cells: tuple[tuple[str, str], ...] = ()) -> Node:
        while self._open and self._open[-1][0] >= depth:
            self._open.pop()
        parent = self._open[-1][1] if self._open else None
        self._open.append((depth, self._count))
        self._count += 1
        self._last = depth
        return Node(text.translate(_MARKS).strip(), cells, parent)
