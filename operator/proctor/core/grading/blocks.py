"""The blocks of an answer: paragraphs, list items and table rows, each with what its heading says about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import re2

from proctor.core.grading.cues import PatternSet

_MAX_HEADING_WORDS = 9
_MAX_INLINE_HEADING_WORDS = 6
_MAX_INLINE_DENIAL_WORDS = 8
_NAMED = 2
"""Columns of a table whose rows are a name and what it stands for."""


class Heading(StrEnum):
    """What a heading says about that which stands under it."""

    CLAIM = "claim"  # "Root cause"
    RULED_OUT = "ruled_out"  # "Not the cause", "Other errors"
    OPEN = "open"  # "Possible causes", "Next steps"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a list item or a table row.

    Attributes:
        text: its words, without marks of lists, tables or emphasis.
        heading: what the heading above it says.
        leads: whether a claim's heading stands directly above it.
        row: whether it is a table's row, whose cells speak of one thing.
    """

    text: str
    heading: Heading
    leads: bool
    row: bool = False


_HEADINGS = PatternSet(
    [
        (
            Heading.RULED_OUT,
            (
                r"rul(?:ed|es|ing)?[ -]?out|\bnot (?:the |a |an )?(?:\w+ )?(?:cause|culprit|related|involved|"
                r"behind|responsible|it)|unrelated|red herring|decoy|distract|exclu|dismiss|eliminat|\bnoise|"
                r"\bother (?:\w+ )?(?:\w+ )?(?:errors?|issues?|problems?|findings?|anomal|failures?|incidents?|"
                r"signals?|noise|things?)|else|innocent|irrelevant|\bcleared|non-caus|false (?:lead|alarm)|"
                r"coincid|background|^(?:none|neither) of\b|^not\b|^discard\w*|\bnothing to do\b|ausgeschlossen|"
                r"nicht die ursache|"
                r"descartad|écarté|not behind|set aside|"
                r"\bwhat(?: it| this| that)?(?:'s| is| was)?(?: it| this)? ?(?:not|isn't|wasn't)|^reject\w+|"
                r"\breject\w+ (?:hypoth|theor|candid|suspect|altern|expl)"
            ),
        ),
        (
            Heading.OPEN,
            (
                r"hypothes|\bpossibl|\bpotential|candidate|suspect|\bmight\b|\bmay\b|\bcould\b|next steps?|"
                r"open (?:question|point)|recommend|to (?:check|verify|investigate)|\btodo\b|\bplan\b|mitigation|"
                r"remediation|\bfix(?:es)?\b|follow[- ]?up|theor(?:y|ies)|\boptions?\b|what i (?:checked|looked)|"
                r"considered|unknown|checks?\b|speculat"
            ),
        ),
        (
            Heading.CLAIM,
            (
                r"root[- ]?causes?|\bcauses?\b|culprits?|diagnosis|\bfindings?\b|conclusion|verdict|\banswer\b|"
                r"what (?:went wrong|happened|fails|failed|broke|is wrong)|\bwhat(?:'s| is) (?:wrong|"
                r"going wrong|causing)|\bfault\b|\breasons?\b|\bwhy\b|tl;?dr|"
                r"\bsummary\b|bottom line|ursache|causa\b|原因|\bfaulty\b|\bbroken\b|\bpoint of failure|"
                r"\bfailing (?:component|service|part|system|dependency)|\bcontribut\w+ factors?"
            ),
        ),
    ]
)
_REPORTS = re2.compile(
    r"\bhealth checks?\b|\bnot (?:as|there|seen|present) (?:\w+ )?(?:before|was|were|usual|earlier)\b"
)
"""Words of headings that say what is told, and neither rule it out nor leave it open: "What is not as it was"."""

_TITLED = re2.compile(r"(?::|,| -+) +\S")
"""A heading with something after its key: "Status: healthy"."""

_CLAIMING = PatternSet(
    [
        (
            "cause",
            (
                r"root[- ]?causes?|\bcauses?\b|culprits?|diagnosis|verdict|\bfault\b|\breasons?\b|ursache|causa\b|原因|"
                r"\bfaulty\b|\bbroken\b|\bpoint of failure|\bfailing (?:component|service|part|system|dependency)|"
                r"\bcontribut\w+ factors?|\bwhat(?:'s| is) (?:wrong|going wrong|causing)"
            ),
        )
    ]
)
_CAUSES = PatternSet([("causes", r"\b(?:causes|culprits|reasons|faults|factors|ursachen|causas)\b")])
_KEYED = re2.compile(r"^\**[^\s.:|,;()*][^.:|,;()*]{1,40}:\**[ \t]+\S")
"""A line that says what its words are: "Host: …"."""

_MAX_KEY_WORDS = 5
_MAX_TITLE_WORDS = 4
_BEING = frozenset({"is", "are", "was", "were", "the", "it"})
_ITEM = re2.compile(r"^[ \t]{0,12}(?:[-*+]|\(?[0-9a-z]{1,2}[.)])[ \t]+")
_RULE = re2.compile(r"^[ \t|:=_*-]+$")


def classify_heading(text: str) -> Heading:
    """Say what a heading says; denial wins over doubt, and doubt over a claim: "not the cause", "possible causes"."""
    found = _HEADINGS.find(_REPORTS.sub("report", text.replace("_", " ")))
    for heading in (Heading.RULED_OUT, Heading.OPEN, Heading.CLAIM):
        if heading in found:
            return heading
    return Heading.PLAIN


def _claims(heading: str) -> bool:
    """Whether that which stands under a heading is what the heading calls the cause."""
    return bool(_CLAIMING.find(heading.replace("_", " ")))


def read_blocks(text: str, *, titled: bool = False) -> list[Block]:
    """Cut a clean answer into its blocks, in order.

    Args:
        text: the answer.
        titled: whether a heading that says something ("Status: healthy") is a block too.
    """
    return list(_Reader(text.lower(), titled=titled).blocks())


class _Reader:
    """Walks the lines once; holds the heading that counts, and the paragraph that is growing."""

    def __init__(self, text: str, *, titled: bool) -> None:
        self._lines = text.split("\n")
        self._titled = titled
        self._heading = Heading.PLAIN
        self._of_list = False
        self._fresh = False
        self._columns: list[str] = []
        self._words: list[str] = []
        self._item = False

    def blocks(self) -> Iterator[Block]:
        for raw in self._lines:
            line = raw.strip()
            if (
                not line
                or line.startswith("```")
                or (line[0] in "-=_*:" and "|" not in line and len(line) > 1 and _RULE.match(line) is not None)
            ):
                if (line[:1] in ("-", "=") and self._is_underlined()) or (not line and self._is_title()):
                    yield from self._open(_bare(self._words.pop()), of_list=False)
                yield from self._flush()
                self._columns = self._columns if line else []
            elif line.startswith("#"):
                yield from self._flush()
                yield from self._open(_bare(line.lstrip("# ")), of_list=False)
            elif line.startswith("|") or line.count("|") > 1:
                yield from self._flush()
                yield from self._row(line)
            else:
                yield from self._words_of(raw, line)
        yield from self._flush()

    def _is_title(self) -> bool:
        """Whether a lone line of a few plain words stands by itself: "Unrelated observations"."""
        if len(self._words) != 1 or self._item:
            return False
        words = self._words[0].split()
        return (
            len(words) <= _MAX_TITLE_WORDS
            and all(word.isalpha() and word not in _BEING for word in words)
            and classify_heading(self._words[0]) is not Heading.PLAIN
        )

    def _words_of(self, raw: str, line: str) -> Iterator[Block]:
        mark = _ITEM.match(raw) if line[0] in "-*+(" or line[1:3].strip()[:1] in (".", ")") else None
        if mark is not None:
            yield from self._flush()
            line, self._item = raw[mark.end() :].strip(), True
        elif self._is_heading(line) and (not self._words or self._interrupts(line)):
            yield from self._flush()
            yield from self._open(line.strip(":* _"), of_list=line.rstrip("*_ ").endswith(":"))
            return
        elif self._words and not self._item and _is_keyed(raw):
            yield from self._flush()
        self._words.append(_spaced_key(line))

    def _is_underlined(self) -> bool:
        """Whether a lone short line stands above this rule: Markdown's other way to write a heading."""
        return (
            len(self._words) == 1
            and not self._item
            and len(self._words[0].split()) <= _MAX_HEADING_WORDS
            and self._words[0][-1] not in ".!?"
        )

    def _is_heading(self, line: str) -> bool:
        """A line of its own that ends in a colon, or is all bold."""
        marked = line.rstrip("*_ ").endswith(":") or (line.startswith(("**", "__")) and line.endswith(("**", "__")))
        return marked and len(line.split()) <= _MAX_HEADING_WORDS

    def _interrupts(self, line: str) -> bool:
        """Whether a heading stands right below a paragraph's line, and is no part of that paragraph."""
        return not self._item and len(line.split()) <= _MAX_TITLE_WORDS and classify_heading(line) is not Heading.PLAIN

    def _open(self, heading: str, *, of_list: bool) -> Iterator[Block]:
        self._heading = classify_heading(heading) if heading else Heading.PLAIN
        if self._heading is Heading.CLAIM and not _claims(heading):
            self._heading = Heading.PLAIN  # "Summary" tells that a finding follows, not that each line is the cause
        # Under "Root causes" each item is one, under "Root cause" the first thing said is.
        self._of_list = of_list or (self._heading is Heading.CLAIM and bool(_CAUSES.find(heading)))
        self._fresh, self._columns = True, []
        if self._titled and _TITLED.search(heading) is not None:
            yield Block(heading, Heading.PLAIN, leads=False)

    def _flush(self) -> Iterator[Block]:
        if not self._words:
            return
        text, item = " ".join(self._words), self._item
        self._words, self._item = [], False
        if self._of_list and not item and not self._fresh:
            self._heading = Heading.PLAIN  # "Ruled out:" speaks of the list below it, not of what follows that list
        leads = self._heading is Heading.CLAIM and (self._fresh or (item and self._of_list))
        self._fresh = False
        yield Block(_bare(text), self._heading, leads)

    def _row(self, line: str) -> Iterator[Block]:
        cells = [cell.strip() for cell in _bare(line).strip("|").split("|")]
        if _RULE.match(line) is not None:
            return
        if not self._columns:
            self._columns = cells
            return
        if len(cells) == len(self._columns) == _NAMED and classify_heading(cells[0]) is not Heading.PLAIN:
            yield Block(": ".join(cells), Heading.PLAIN, leads=False)
            return
        parts = [_cell(name, cell) for name, cell in zip(self._columns, cells, strict=False) if cell]
        parts += cells[len(self._columns) :]
        self._fresh = False
        # A table of suspects gives verdicts: what its heading leaves open, its rows say.
        heading = Heading.PLAIN if self._heading is Heading.OPEN else self._heading
        yield Block(", ".join(parts), heading, leads=False, row=True)


def _is_keyed(raw: str) -> bool:
    return (
        raw[0] not in " \t" and _KEYED.match(raw) is not None and len(raw.partition(":")[0].split()) <= _MAX_KEY_WORDS
    )


def _spaced_key(line: str) -> str:
    """A key is written as words: ``affected_checkouts: 8``."""
    key, colon, value = line.partition(": ")
    return f"{key.replace('_', ' ')}{colon}{value}" if "_" in key and " " not in key else line


def _bare(text: str) -> str:
    """Drop emphasis and code marks."""
    return text.replace("*", "").replace("`", "").replace("~", "")


def _cell(column: str, cell: str) -> str:
    """A cell that answers its column's question is read with it: "root cause?" and "yes"."""
    if cell in ("yes", "true", "y") and _CLAIMING.find(column):
        return "is the root cause"
    if cell in ("no", "false", "n", "none", "-"):
        return f"{column}: no"
    return cell


def lists_causes(sentence: str) -> bool:
    """Whether an early colon is followed by causes in the plural, each of which then is one."""
    return bool(_CAUSES.find(sentence.partition(":")[0]))


def inline_heading(sentence: str) -> Heading:
    """Say what the words before an early colon are: "Ruled out: the CDN"."""
    head, colon, rest = sentence.partition(":")
    size = len(head.split())
    if not colon or not rest.startswith(" ") or size > _MAX_INLINE_DENIAL_WORDS:
        return Heading.PLAIN
    heading = classify_heading(head)
    if size > _MAX_INLINE_HEADING_WORDS and heading is not Heading.RULED_OUT:
        return Heading.PLAIN
    # "Answer: …" tells that a finding follows, not that each of its words is the cause.
    return Heading.PLAIN if heading is Heading.CLAIM and not _claims(head) else heading
