"""An answer as plain text: whatever was sent, without the signs that only hide or dress words.

Answers are hostile input. Nothing here raises on one, and everything is linear in its size.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator

import re2

MAX_ANSWER_BYTES = 64 * 1024
"""What the gateway takes as an answer; more is cut, never graded."""

_MAX_DEPTH = 12
_MAX_LEAVES = 2000

_ASIDE = ("evidence", "confidence", "impact", "note")
"""Keys that are read alone: what stands under a cause is not the cause where it is one of these."""

_ESCAPES = re2.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
"""ANSI colours, cursor moves, titles and links."""

_SAME = {
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d\u2043", "-"),
    **dict.fromkeys("\u2014\u2015\u2e3a", " - "),
    **dict.fromkeys("\u2018\u2019\u201a\u201b`\u00b4\u02bc\uff07", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\uff02", '"'),
    **dict.fromkeys("\u2192\u21d2\u27f6\u279c\u2794", " -> "),
    **dict.fromkeys("\u2022\u25e6\u25aa\u2023\u00b7\u25cf\u25cb", "-"),
    "\u2026": "...",
    "\u3002": ". ",
    "\uff0c": ", ",
    "\u3001": ", ",
    "\uff1a": ": ",
    "\uff1b": "; ",
    "\u2705": " yes ",
    "\u2714": " yes ",
    "\u2713": " yes ",
    "\u274c": " no ",
    "\u2717": " no ",
    "\u2718": " no ",
    "\r": "\n",
    "\x0b": "\n",
    "\x0c": "\n",
    "\u2028": "\n",
    "\u2029": "\n",
    "\u00a0": " ",
}

_LOOKALIKES = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb\u051b\u051d\u03bf\u03b1\u03bd\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7",
    "aeopcyxijsdhqwoavABEZHIKMNOPTYX",
)
"""Cyrillic and Greek letters that look Latin: a word that mixes the scripts is a disguise, not a language."""

_HIDDEN = {
    code: None
    for code in (*range(0x10000), *range(0xE0000, 0xE0080))
    if unicodedata.category(chr(code)) in {"Cc", "Cf", "Cs"} and chr(code) not in "\n\t"
}
"""Control characters, marks of direction, joiners of no width, soft hyphens, tags."""

_SHOWN = _HIDDEN | {ord(sign): plain for sign, plain in _SAME.items()}

_SHOWN_ASCII = {code: plain for code, plain in _SHOWN.items() if code < ord("\x80")}
"""Most answers are ASCII, for which a small table is much quicker."""

_MIXED = re2.compile(r"[\p{Latin}][\p{Cyrillic}\p{Greek}]|[\p{Cyrillic}\p{Greek}][\p{Latin}]")


def clean_answer(answer: bytes | str) -> str:
    """Return the text of an answer: bounded, one normal form, no invisible or control characters, JSON flattened."""
    body = answer.encode("utf-8", "replace") if isinstance(answer, str) else answer
    text = body[:MAX_ANSWER_BYTES].decode("utf-8", "replace")
    flattened = flatten_json(text)
    return normalise_text(text if flattened is None else flattened)


def normalise_text(text: str) -> str:
    """Bring a text to one form: compatible characters, plain dashes and quotes, nothing invisible."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if text.isascii():
        return text.translate(_SHOWN_ASCII)
    shown = text.translate(_SHOWN)
    compatible = unicodedata.normalize("NFKC", shown)
    if compatible != shown:
        shown = compatible.translate(_SHOWN)
    if _MIXED.search(shown) is None:
        return shown
    return "\n".join(
        " ".join(word.translate(_LOOKALIKES) if _MIXED.search(word) else word for word in line.split(" "))
        for line in shown.split("\n")
    )


def flatten_json(text: str) -> str | None:
    """Return a JSON answer as lines ``key: value``; None if it is no JSON object or list."""
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```"):
        bare = bare[3:-3].removeprefix("json").strip()
    if bare[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(bare)
    except (ValueError, RecursionError):
        return None
    return "\n".join(_lines(value, (), [_MAX_LEAVES]))


def _lines(value: object, path: tuple[str, ...], left: list[int]) -> Iterator[str]:
    """Write lists of plain values as lists under their key, objects in a list as one line each."""
    left[0] -= 1
    if left[0] < 0 or len(path) > _MAX_DEPTH:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _lines(inner, (*path, _words(key)), left)
    elif isinstance(value, list):
        if path:
            yield f"{path[-1]}:"
        for inner in value:
            if isinstance(inner, dict) and not any(isinstance(part, dict | list) for part in inner.values()):
                yield "- " + ", ".join(f"{_words(key)}: {_scalar(part)}" for key, part in inner.items())
            elif isinstance(inner, dict | list):
                yield from _lines(inner, path, left)
            else:
                yield f"- {_scalar(inner)}"
        yield "#"
    else:
        yield f"{_name(path)}: {_scalar(value)}" if path else _scalar(value)
        yield ""


def _name(path: tuple[str, ...]) -> str:
    """A key with what it stands under: ``{"cause": {"service": …}}`` is *cause service*."""
    own = path[-1]
    return own if len(path) == 1 or own.startswith(_ASIDE) else f"{path[-2]} {own}"


def _words(key: str) -> str:
    """``ruledOut`` and ``ruled_out`` are both *ruled out*."""
    spaced = "".join(f" {sign.lower()}" if sign.isupper() else sign for sign in key)
    return " ".join(spaced.replace("_", " ").replace("-", " ").split())


def _scalar(value: object) -> str:
    match value:
        case True:
            return "yes"
        case False:
            return "no"
        case None:
            return "none"
    return str(value)
