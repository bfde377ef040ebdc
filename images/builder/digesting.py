"""Names for contents, so that nothing is built twice."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

LENGTH = 16


def digest_texts(texts: Iterable[str]) -> str:
    """Return a short digest of texts."""
    total = hashlib.sha256()
    for text in texts:
        total.update(hashlib.sha256(text.encode()).digest())
    return total.hexdigest()[:LENGTH]


def digest_files(*roots: Path) -> str:
    """Return a short digest of files, and of all files below folders, but for compiled ones."""
    return digest_texts(
        f"{path.relative_to(root.parent)}\0{hashlib.sha256(path.read_bytes()).hexdigest()}"
        for root in roots
        for path in sorted([root] if root.is_file() else root.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    )
