"""A grader's summary as small as a ConfigMap has to be: scores and reasons; marks and judgements are in the store."""

from __future__ import annotations

import json
from typing import Any

from proctor.core.digests import canonical_json

MAX_SUMMARY_BYTES = 900 * 1024
"""A ConfigMap holds a mebibyte in all."""

_LONGEST_REASON, _SHORTEST_REASON = 300, 0
_KEPT = ("attempt", "score", "ungraded")


def shorten_summary(body: bytes, *, limit: int = MAX_SUMMARY_BYTES) -> bytes:
    """Return the summary without what only people read; reasons are cut until the whole fits.

    Args:
        body: the summary as the grader keeps it.
        limit: of the result; the largest run's scores alone take a third of the default.
    """
    summary = json.loads(body)
    reason = _LONGEST_REASON
    while True:
        grades = {cell: _shorten(grade, reason) for cell, grade in summary["grades"].items()}
        short = canonical_json({**summary, "grades": grades, "fault": str(summary["fault"])[:_LONGEST_REASON]})
        if len(short) <= limit or reason == _SHORTEST_REASON:
            return short
        reason //= 2


def _shorten(grade: dict[str, Any], reason: int) -> dict[str, Any]:
    kept = {name: grade.get(name) for name in _KEPT}
    if kept["ungraded"] is not None:
        # An empty reason would read as a grade that is there.
        kept["ungraded"] = str(kept["ungraded"])[:reason] or "?"
    return kept
