"""Anybody's text, made harmless to look at: nothing in it moves a cursor, paints, rings, hides or reverses."""

from __future__ import annotations

import re

_LINES_KEPT = "\n\t"
_PLAIN_LINES = re.compile(r"[ -~\n\t]*", re.ASCII)


def make_inert(text: str, *, keep_lines: bool = False) -> str:
    """Return text in which what is not printable has become visible.

    Args:
        text: anybody's text.
        keep_lines: leave line ends and tabs as they are.
    """
    # Most text is plain, and looking at it sign by sign is what takes the time.
    if text.isprintable() or (keep_lines and _PLAIN_LINES.fullmatch(text)):
        return text
    allowed = _LINES_KEPT if keep_lines else ""
    strange = {sign for sign in set(text) if not sign.isprintable() and sign not in allowed}
    return text.translate({ord(sign): _show_code(sign) for sign in strange}) if strange else text


def _show_code(sign: str) -> str:
    return " " if sign.isspace() else f"\\u{ord(sign):04x}"
