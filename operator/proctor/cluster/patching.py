"""The smallest merge patch from one JSON object to another (RFC 7386)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def build_merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return what has to be sent so that `before` becomes `after`; empty if nothing has."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            inner = build_merge_patch(old, value)
            if inner:
                patch[name] = inner
        elif name not in before or old != value:
            patch[name] = value
    return patch
