"""Clauses and their force: what an answer asserts, denies, doubts or only considers (grading rule 3).

A clause is cut where its negation ends: at "but", "rather than", ", not", ", which", at a semicolon or dash, and at an
"and" or comma that begins another statement. Words are walked once; nothing here backtracks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import starmap

import re2

from proctor.core.grading.blocks import Heading, classify_heading, inline_heading, lists_causes, read_blocks
from proctor.core.grading.cues import Cue, find_cues

CLAIM_HEAD = "the root cause is"
_CAUSE_OPENERS = ("the root cause", "root cause", "the cause")
_ASKS = ("what", "which", "so what", "and what", "root cause", "cause", "the cause", "culprit")
_MAX_ASKED_WORDS = 5
_CONFIRMED = re2.compile(
    r"\b(?:this|that|it|which)(?: one)? (?:is|was) (?:\w+ )?the (?:\w+ )?(?:cause|culprit)\b|[^a-z]confirmed\b"
)
"""What an item of an open list says when it is no longer open."""

_NUMBERED = re2.compile(r"^[1-9]\)$")
"""Items of a list within a sentence."""

_CONDITION = re2.compile(r"\b(?:if|unless)\b|^should (?:it|the|this|that|they)\b")
_DENYING = frozenset({Cue.DENIES, Cue.WELL})
_MAX_CLAUSES = 4000
_DENIERS = frozenset({"not", "neither", "nor", "rather", "instead", "unlike", "besides"})
_MAX_HEADLESS_WORDS = 14
_MAX_HEAD_WORDS = 4


class Force(StrEnum):
    """How a clause means what it says."""

    ASSERTED = "asserted"
    DOUBTED = "doubted"
    DENIED = "denied"
    CONSIDERED = "considered"


@dataclass(frozen=True, slots=True)
class Clause:
    """One statement of an answer.

    Attributes:
        text: its words, lower case; a claim's head is put in front where it was said before.
        force: how it is meant.
        negated: whether it holds any negation, even one that may speak of something else.
        dismissing: whether it rules out what it speaks of.
        refusing: whether it says that the cause is not known.
        listing: whether it only strings names together, and states nothing.
        well: whether it is denied only because it says that its subject is well.
        conditional: whether its sentence has put it under a condition: "if it recurs, …".
        proposing: whether it is considered only because it recommends what it says.
        sentence: number of its sentence in the answer.
        block: number of its block.
    """

    text: str
    force: Force
    negated: bool
    dismissing: bool
    refusing: bool
    listing: bool
    well: bool
    conditional: bool
    proposing: bool
    sentence: int
    block: int


_CUT_BEFORE_WORDS = (
    "but however although though whereas while yet except unlike despite nor therefore hence thus instead "
)
_CUT_BEFORE = frozenset(_CUT_BEFORE_WORDS.split())
_PAIRS = frozenset(
    {
        "rather than",
        "instead of",
        "as opposed",
        "even though",
        "other than",
        "and not",
        "not because",
        "and therefore",
        "and so",
    }
)
_PAIR_OPENERS = frozenset(pair.split()[0] for pair in _PAIRS)
_DASHES = frozenset({"-", "--"})
_OPENERS = frozenset(
    {
        "while",
        "although",
        "though",
        "whereas",
        "despite",
        "unlike",
        "rather",
        "instead",
        "even",
        "if",
        "besides",
        "apart",
    }
)
_RELATIVES = frozenset(
    {
        "which",
        "so",
        "not",
        "never",
        "neither",
        "nor",
        "none",
        "no",
        "nothing",
        "nobody",
        "without",
        "who",
        "unrelated",
        "independent",
        "hence",
        "then",
        "these",
        "they",
        "it",
        "this",
    }
)
_FINITE_WORDS = (
    "is are was were isn't aren't wasn't weren't has have had hasn't haven't does do did doesn't don't didn't can "
    "can't cannot could couldn't will would won't wouldn't fails fail failed times timed returns return returned "
    "refuses refused shows show showed caused explains explain breaks broke affects affect affected "
    "ended began started occurred happened appear appears appeared remains looks seems became becomes comes came "
    "blocks blocked drops dropped rejects rejected throttles throttled hangs hung surfaces surfaced propagates "
    "propagated waits waited needs need may might must should touch touches hit hits predate predates precede "
    "gets get got takes took end ends stopped stops makes made gave gives goes went leads led answers ran runs reports "
    "reported reaches reached lost carries carried sind wird wurde läuft fallaron puede está están ont sont "
    "lasts lasted precedes succeed succeeds succeeded complete completes completed "
    "take wait hang stall stalls stalled rise rises rose climbs climbed jumps jumped spends spent "
)
_FINITE = frozenset(_FINITE_WORDS.split())
_GLUE_WORDS = (
    "to on at in by with from of for the a an because due when that into between its their after before through via "
    "not no -> = + against die der das von zu ist kann la le les el los de à est es within while during since as up "
    "down out than all each both only also auf zur zum en du des con del "
)
_GLUE = frozenset(_GLUE_WORDS.split())
_LISTING_WORDS = 6
_PUNCTUATION = ".,;:!()'\""
_VERB_GLUE = 2
"""A verb makes a statement more than other small words do."""

_ENDINGS = frozenset(".!?")
_CLOSERS = frozenset(".!?\"')]")
_ABBREVIATIONS = frozenset(
    {"e.g.", "i.e.", "etc.", "vs.", "approx.", "ca.", "min.", "max.", "sec.", "resp.", "incl.", "cf."}
)


def read_clauses(text: str, *, skip: Callable[[str], bool], titled: bool = False) -> list[Clause]:
    """Read a clean answer as clauses, in order.

    Args:
        text: the answer.
        skip: says of a sentence that it is not the answer's own.
        titled: whether headings are read too.
    """
    clauses: list[Clause] = []
    sentence = 0
    for number, block in enumerate(read_blocks(text, titled=titled)):
        heading = block.heading
        if heading is Heading.OPEN and _CONFIRMED.search(block.text) is not None:
            heading = Heading.PLAIN  # a list of suspects says of this one that it is the cause
        for position, words in enumerate([block.text] if block.row else _join_questions(split_sentences(block.text))):
            sentence += 1
            if skip(words):
                continue
            inline = inline_heading(words)
            if inline is not Heading.PLAIN:
                # "Ruled out: …" throws its shadow on what follows in its paragraph, "Root cause: …" only ends one.
                heading = Heading.PLAIN if inline is Heading.CLAIM else inline
            leads = block.leads and position == 0
            claiming = leads or inline is Heading.CLAIM
            conditional = False
            for piece in [words] if block.row else _statements(words, leads=leads, claiming=claiming):
                conditional = conditional or _CONDITION.search(piece) is not None
                weighed = _context(heading, inline, words)
                clauses.append(_weigh(piece, weighed, sentence, number, conditional=conditional))
                if len(clauses) >= _MAX_CLAUSES:
                    return clauses
    return clauses


def _context(heading: Heading, inline: Heading, words: str) -> Heading:
    """A sentence that itself speaks of a cause leaves the shadow of a heading further up in its paragraph."""
    if heading is Heading.RULED_OUT and inline is Heading.PLAIN and words.startswith(_CAUSE_OPENERS):
        return Heading.PLAIN
    return heading


def split_sentences(text: str) -> Iterator[str]:
    """Cut at full stops that end a word, never inside a host name, a number or an abbreviation."""
    words: list[str] = []
    for word in text.split():
        words.append(word)
        if word[-1] in _CLOSERS and word.rstrip("\"')]")[-1:] in _ENDINGS and word.strip("()\"'") not in _ABBREVIATIONS:
            yield " ".join(words)
            words = []
    if words:
        yield " ".join(words)


def _join_questions(sentences: Iterable[str]) -> Iterator[str]:
    """Read a short question and its answer as a heading and the words under it."""
    asked = ""
    for sentence in sentences:
        if asked:
            yield f"{asked[:-1]}: {sentence}"
            asked = ""
        elif sentence[-1] == "?" and sentence.startswith(_ASKS) and len(sentence.split()) <= _MAX_ASKED_WORDS:
            asked = sentence
        else:
            yield sentence
    if asked:
        yield asked


def _statements(sentence: str, *, leads: bool, claiming: bool) -> Iterator[str]:
    """The clauses of a sentence, heads of claims carried over to where they are left out."""
    listed = claiming and lists_causes(sentence)
    said, head = "", CLAIM_HEAD if leads else ""
    for number, piece in enumerate(_cut(sentence.split())):
        text = " ".join(piece).strip(" ,;")
        if not text:
            continue
        headless = len(piece) <= _MAX_HEADLESS_WORDS and not _has_verb(piece)
        if head or (listed and number > 0):
            text, head = _with_head(text), ""
        elif number > 0:
            text = _carry_on(text, said, headless=headless, claiming=claiming)
        if headless and len(piece) <= _MAX_HEAD_WORDS and classify_heading(text) is Heading.CLAIM:
            head = CLAIM_HEAD  # "Root cause - the database": the dash stands for a verb
        said = _head_of_denial(text) or said
        yield text


def _with_head(text: str) -> str:
    return text if find_cues(text) & {Cue.CLAIMS} else f"{CLAIM_HEAD} {text}"


def _carry_on(text: str, said: str, *, headless: bool, claiming: bool) -> str:
    """Say in full what a clause leaves out: "not the CDN but the database", "the CDN is not, the database is"."""
    if text.startswith("but ") and said and headless:
        return f"{said} {text.removeprefix('but ').removeprefix('rather ')}"
    if headless and claiming:
        return f"{CLAIM_HEAD} {text}"
    bare = text.rstrip(".,;!")
    if said and bare.endswith((" is", " are", " was", " were", " does", " did")):
        return f"{bare} the root cause"
    return text


def _head_of_denial(text: str) -> str:
    """``the root cause is`` of "the root cause is not the CDN": what "but …" goes on with."""
    cues = find_cues(text)
    if not cues & _DENYING or not (Cue.CLAIMS in cues or text.startswith(("it ", "it's ", "this "))):
        return ""
    return CLAIM_HEAD


def _has_verb(words: list[str]) -> bool:
    return any(starmap(_is_verb, zip(words, [*words[1:], ""], strict=True)))


def _is_verb(word: str, after: str) -> bool:
    if word == "get" and after.startswith("/"):
        return False  # a route's method
    return word in _FINITE or word.endswith("n't") or word.strip(_PUNCTUATION) in _FINITE


def _cut(words: list[str]) -> Iterator[list[str]]:
    """Cut a sentence's words into clauses."""
    piece: list[str] = []
    opened = bool(words) and words[0].strip(",") in _OPENERS
    for index, word in enumerate(words):
        if piece and _begins(words, index, piece, opened=opened):
            yield piece
            piece, opened = [], word.strip(",") in _OPENERS
        if word in _DASHES:
            continue
        piece.append(word)
        if word[-1] == ";" or (word[-1] == ":" and piece[0] in _DENIERS):
            yield piece
            piece = []
    if piece:
        yield piece


def _begins(words: list[str], index: int, piece: list[str], *, opened: bool) -> bool:
    """Whether another clause begins at a word."""
    whole, before = words[index], words[index - 1]
    word = whole.strip("(,")
    if word in _CUT_BEFORE or whole in _DASHES or before in _DASHES:
        return True
    if word in _PAIR_OPENERS and f"{word} {words[index + 1].strip(',') if index + 1 < len(words) else ''}" in _PAIRS:
        return True
    if (whole[0] == "(" and word in _DENIERS) or (_NUMBERED.match(whole) and not any("(" in past for past in piece)):
        return True
    if before[-1] == ",":
        if opened or word in _RELATIVES:
            return True
        return (_has_verb(piece) or piece[0] in ("not", "and")) and _has_verb(_until_comma(words, index))
    return word == "and" and _has_verb(piece) and _has_verb(_until_comma(words, index + 1)[:6])


def _until_comma(words: list[str], index: int) -> list[str]:
    """The words up to the next comma or end, at most a dozen."""
    found: list[str] = []
    for word in words[index : index + 12]:
        found.append(word)
        if word[-1:] in (",", ";"):
            break
    return found


def _weigh(text: str, heading: Heading, sentence: int, block: int, *, conditional: bool) -> Clause:
    cues = find_cues(text)
    force = _force(cues)
    denied_above = heading is Heading.RULED_OUT
    if denied_above and force is Force.ASSERTED:
        force = Force.DENIED
    elif heading is Heading.OPEN and force is Force.ASSERTED:
        force = Force.DOUBTED
    return Clause(
        text=text,
        force=force,
        negated=Cue.LIMITS in cues or (Cue.NEGATES in cues and not cues & {Cue.FAILS, Cue.AFFIRMS, Cue.OPEN}),
        dismissing=Cue.OPEN not in cues
        and force is not Force.CONSIDERED
        and (denied_above or force is Force.DENIED or Cue.DISMISSES in cues),
        refusing=Cue.REFUSES in cues,
        listing=_is_listing(text),
        well=force is Force.DENIED and not denied_above and Cue.DENIES not in cues,
        conditional=conditional,
        proposing=force is Force.CONSIDERED and Cue.CONSIDERS not in cues,
        sentence=sentence,
        block=block,
    )


def _is_listing(text: str) -> bool:
    """Names in a row, without the small words that make a statement of them."""
    words = text.split()
    if len(words) < _LISTING_WORDS or not text.isascii() or "root cause" in text or text.startswith("cause:"):
        return False
    glue = 0
    for raw in words:
        word = raw.strip(_PUNCTUATION)
        if word in _FINITE or "n't" in word:
            glue += _VERB_GLUE
        elif raw in _GLUE or word in _GLUE or raw.endswith(":"):
            glue += 1
    return glue * _LISTING_WORDS < len(words)


def _force(cues: frozenset[str]) -> Force:
    if cues & {Cue.CONSIDERS, Cue.PROPOSES}:
        return Force.CONSIDERED
    if Cue.OPEN in cues:
        return Force.DOUBTED
    if cues & _DENYING and (Cue.AFFIRMS not in cues or Cue.SWEEPS in cues):
        return Force.DENIED
    if Cue.DOUBTS in cues:
        return Force.DOUBTED
    return Force.ASSERTED
