"""Digests and previews: how values are named, and how little of them is shown."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]

PREVIEW_BYTES = 240
"""Previews are for scanning a table by eye; whole bodies are in the blobs."""


def canonical_json(value: object) -> bytes:
    """Serialise with sorted keys and no spaces, so that equal values have equal bytes (M-B8)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode(
        "utf-8", "surrogatepass"
    )


def digest_bytes(body: bytes) -> str:
    """Return the SHA-256 of a body as lower-case hex."""
    return hashlib.sha256(body).hexdigest()


def digest_json(value: object) -> str:
    """Return the digest of a value's canonical JSON."""
    return digest_bytes(canonical_json(value))


def preview(body: bytes, limit: int = PREVIEW_BYTES) -> str:
    """Return the first bytes of a body as text, never cut inside a UTF-8 character (M-B8)."""
    if len(body) <= limit:
        return body.decode("utf-8", "replace")
    # 'ignore' drops only the character that the cut went through; invalid bytes elsewhere were seen to be rare enough
    # that losing them in a preview costs nothing.
    return body[:limit].decode("utf-8", "ignore") + "…"
