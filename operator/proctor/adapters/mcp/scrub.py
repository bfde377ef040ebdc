"""Taking a server's own credentials out of what it says, before an agent reads it or the record keeps it (S17)."""

from __future__ import annotations

import json
from collections.abc import Iterable

MARK = "•••"

_LEAST_SIGNS = 16
"""Shorter secrets, `default` above all, occur in honest results, and to change those would change what is measured."""


class Scrubber:
    """Takes secrets out of JSON texts.

    Args:
        secrets: values; short ones are left alone.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets if len(secret) >= _LEAST_SIGNS for form in _write(secret)}
        # The longest first: one may be a part of another.
        self._forms = sorted(forms, key=len, reverse=True)

    def __call__(self, body: bytes) -> bytes:
        """Return a text with a mark where a secret was."""
        for form in self._forms:
            if form in body:
                body = body.replace(form, MARK.encode())
        return body


def _write(secret: str) -> tuple[bytes, ...]:
    """Return the ways in which writers of JSON write a text; with its slashes as they are, or escaped."""
    plain, ascii_only = (json.dumps(secret, ensure_ascii=ascii_)[1:-1] for ascii_ in (False, True))
    return tuple(text.encode("utf-8", "replace") for text in (plain, ascii_only, plain.replace("/", "\\/")))
