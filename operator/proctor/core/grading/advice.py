"""Advice: which things an answer says to cut, and which to keep.

A rubric about what to do rather than about a cause reads an answer this way. Each statement takes its advice from its
own words ("drop the heartbeats", "the access logs stay"), from a bare word after it ("Heartbeats: 2 M. Drop."), or from
the heading above it ("Keep:"). What is neither said to go nor to stay has no advice, and earns and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import re2

from proctor.core.grading.advice_cues import CUES, HEDGES, NEUTRAL
from proctor.core.grading.clauses import split_sentences
from proctor.core.grading.outline import Node, read_outline


class Advice(StrEnum):
    """What is to become of a thing."""

    CUT = "cut"
    KEEP = "keep"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Statement:
    """A part of a sentence that gives one advice.

    Attributes:
        text: its words, lower case.
        advice: what it says of what it names.
        limited: whether its sentence goes on to except something from it.
        node: the outline's node that it stands in.
        own: whether its own words give the advice.
        open: whether it hedges or asks: then nothing else gives it an advice either.
    """

    text: str
    advice: Advice
    limited: bool
    node: int
    own: bool
    open: bool


_SEPARATOR = re2.compile(
    r"(,? (?:and |but )?(?:except|excluding|rather than|instead of|as opposed to|unlike|not|apart from|other than|"
    r"save for|nor) |; |;$|, but |, while |, whereas |, |: | \(|\) | - | -> | but | while | whereas | although | "
    r"though | yet | and )"
)
_CONTRASTS = (";", "but", "while", "whereas", "although", "though", "yet")
_EXCEPTIONS = (
    "except",
    "excluding",
    "rather",
    "instead",
    "as opposed",
    "unlike",
    "not",
    "apart",
    "other",
    "save",
    "nor",
)
_PARTS = ("the former", "the latter", "the first", "the second", "the other", "half ", "the rest")
"""How a statement begins that speaks of one of several things which were named before it."""

_YES, _NO = frozenset({"yes", "y", "true", "x"}), frozenset({"no", "n", "false", "-", "none"})
_CUT_MARK, _KEEP_MARK, _SPACE = "\x01", "\x02", "\x03"
_OPPOSITE = {Advice.CUT: Advice.KEEP, Advice.KEEP: Advice.CUT, Advice.NONE: Advice.NONE}


def read_advice(text: str, *, names: Callable[[str], bool], skip: Callable[[str], bool]) -> list[Statement]:
    """Read what a clean answer advises, in order.

    Args:
        text: the answer.
        names: says whether words name anything that the rubric knows.
        skip: says of a sentence that it is not the answer's own.
    """
    nodes = read_outline(text)
    found: list[Statement] = []
    for number, node in enumerate(nodes):
        found += _read_row(node, number, names) if node.cells else _read_text(node.text, number, names, skip)
    _take_up(found, nodes, names)
    said = {(statement.node, statement.advice) for statement in found if statement.own}
    heads = [Advice.NONE if names(node.text) else _only_advice(node.text) for node in nodes]
    return [_under_heading(statement, said, nodes, heads) for statement in found]


def _read_text(
    text: str, number: int, names: Callable[[str], bool], skip: Callable[[str], bool]
) -> Iterator[Statement]:
    for sentence in split_sentences(text):
        if skip(sentence):
            continue
        parts = _Cutter(names).cut(sentence)
        for index, (words, advice) in enumerate(parts):
            limited = advice is Advice.CUT and any(other is Advice.KEEP for _, other in parts[index + 1 :])
            hedged = HEDGES.search(words) is not None
            said = Advice.NONE if hedged else advice
            yield Statement(words, said, limited, number, own=said is not Advice.NONE, open=hedged)


def _read_row(node: Node, number: int, names: Callable[[str], bool]) -> Iterator[Statement]:
    """A column that says "keep" speaks for its cells alone; the others are read as one sentence."""
    plain, verdict = [], Advice.NONE
    for column, cell in node.cells:
        advice = _only_advice(column)
        if advice is Advice.NONE or _advice_in(cell) is not Advice.NONE:
            plain.append(cell)
        elif cell in _YES or cell in _NO:
            verdict = advice if cell in _YES else _OPPOSITE[advice]
        elif advice is Advice.CUT:
            plain.append(cell)
            verdict = advice
        else:
            yield Statement(f"{column}: {cell}", advice, limited=False, node=number, own=True, open=False)
    for statement in _read_text(", ".join(cell for cell in plain if cell), number, names, lambda _: False):
        unsaid = statement.advice is Advice.NONE and not statement.open
        yield replace(statement, advice=verdict, own=verdict is not Advice.NONE) if unsaid else statement


def _mark(sentence: str) -> str:
    """Put a sign in front of each word of advice, and hold its words together."""

    def signed(match: Any) -> str:  # noqa: ANN401 - re2 has no types
        keeps = match.group("spared") or match.group("kept")
        return (_KEEP_MARK if keeps else _CUT_MARK) + str(match.group(0)).replace(" ", _SPACE)

    return str(CUES.sub(signed, str(NEUTRAL.sub(" ", sentence))))


def _advice_in(marked_or_plain: str) -> Advice:
    """The first advice that words give."""
    marked = marked_or_plain if _has_mark(marked_or_plain) else _mark(marked_or_plain)
    places = [(marked.find(sign), advice) for sign, advice in ((_CUT_MARK, Advice.CUT), (_KEEP_MARK, Advice.KEEP))]
    places = [place for place in places if place[0] >= 0]
    return min(places)[1] if places else Advice.NONE


def _only_advice(words: str) -> Advice:
    """The advice that words give, if they give one only."""
    marked = _mark(words)
    if (_CUT_MARK in marked) == (_KEEP_MARK in marked) or HEDGES.search(words.rstrip("?")) is not None:
        return Advice.NONE
    return Advice.CUT if _CUT_MARK in marked else Advice.KEEP


def _has_mark(text: str) -> bool:
    return _CUT_MARK in text or _KEEP_MARK in text


def _clean(text: str) -> str:
    bare = text.replace(_CUT_MARK, "").replace(_KEEP_MARK, "").replace(_SPACE, " ")
    return bare.strip(" ,;")


class _Cutter:
    """Cuts one sentence where its advice changes."""

    def __init__(self, names: Callable[[str], bool]) -> None:
        self._names = names
        self._parts: list[tuple[str, Advice]] = []
        self._words, self._advice = "", Advice.NONE
        self._named_first = self._excepting = False
        self._waiting = ""

    def cut(self, sentence: str) -> list[tuple[str, Advice]]:
        """Return the sentence's parts with their advice."""
        pieces = _SEPARATOR.split(_mark(sentence))
        self._piece("", pieces[0])
        for separator, piece in zip(pieces[1::2], pieces[2::2], strict=False):
            self._piece(separator, piece)
        self._end()
        return self._parts

    def _piece(self, separator: str, piece: str) -> None:
        word = separator.strip(" ,").removeprefix("and ").removeprefix("but ")
        if _has_mark(piece):
            self._advise(separator, piece)
        elif word.startswith(_EXCEPTIONS) and self._advice is not Advice.NONE:
            advice = self._advice if self._excepting else _OPPOSITE[self._advice]
            self._end()
            self._words, self._advice, self._excepting = word + " " + piece, advice, True
        elif word.startswith(_CONTRASTS) and self._advice is not Advice.NONE:
            self._end()
            self._waiting = piece
        elif self._advice is Advice.NONE or self._waiting or (self._named_first and self._names(piece)):
            self._waiting += separator + piece
        else:
            self._words += separator + piece

    def _advise(self, separator: str, piece: str) -> None:
        advice = _advice_in(piece)
        before = piece[: min(piece.find(sign) for sign in (_CUT_MARK, _KEEP_MARK) if sign in piece)]
        named_first = self._names(_clean(before))
        if advice is self._advice and not (named_first or self._waiting or self._named_first):
            self._words += separator + piece
            return
        bare = not named_first and not self._names(_clean(piece))
        waiting = self._waiting
        self._waiting = ""
        self._end()
        self._words = (waiting + separator if waiting else "") + piece
        self._advice = advice
        self._named_first = named_first or bool(bare and waiting)

    def _end(self) -> None:
        words, waiting = _clean(self._words), _clean(self._waiting)
        if words:
            self._parts.append((words, self._advice))
        if waiting:
            self._parts.append((waiting, Advice.NONE))
        self._words, self._advice, self._waiting = "", Advice.NONE, ""
        self._named_first = self._excepting = False


def _take_up(found: list[Statement], nodes: list[Node], names: Callable[[str], bool]) -> None:
    """Give what was named last the advice of a statement that names nothing: "Heartbeats: 2 M. Drop them."."""
    last: int | None = None
    for index, statement in enumerate(found):
        if names(statement.text):
            last = index
        elif statement.own and last is not None and not statement.text.startswith(_PARTS):
            named = found[last]
            if not (named.own or named.open) and _stands_over(named.node, statement.node, nodes):
                found[last] = replace(named, advice=statement.advice, own=True)


def _stands_over(upper: int, lower: int, nodes: list[Node]) -> bool:
    """Whether a node is another, or one of those that the other stands under."""
    number: int | None = lower
    while number is not None and number != upper:
        number = nodes[number].parent
    return number == upper


def _under_heading(
    statement: Statement, said: set[tuple[int, Advice]], nodes: list[Node], heads: list[Advice]
) -> Statement:
    """Give a statement without advice that of the nearest heading which is nothing but advice.

    An item that gives this advice itself, of a part of what it names, does not give it of the rest.
    """
    if statement.own or statement.open:
        return statement
    parent = nodes[statement.node].parent
    while parent is not None:
        advice = heads[parent]
        if advice is not Advice.NONE:
            return statement if (statement.node, advice) in said else replace(statement, advice=advice)
        parent = nodes[parent].parent
    return statement
