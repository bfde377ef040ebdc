"""What the chart has to be told of images that were built here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OWN = {
    "operator": "operator",
    "sandbox": "sandbox",
    "sandboxClaudeCode": "sandbox-claude-code",
    "clickhouse": "clickhouse-embedded",
}
"""Images that Proctor itself starts: the chart's word, and the folder."""
_SERVERS = ("mcp-clickhouse", "clickscope")
"""MCP servers: the folder is the command, for which the chart says the image."""


def chart_values(images: Mapping[str, str]) -> dict[str, Any]:
    """Return the chart's values for images.

    Args:
        images: references by folder, each `REPOSITORY@sha256:…`.
    """
    return {
        "images": {word: _split(images[name]) for word, name in _OWN.items() if name in images},
        "serverImages": {name: _split(images[name]) for name in _SERVERS if name in images},
    }


def _split(reference: str) -> dict[str, str]:
    repository, _, digest = reference.partition("@")
    return {"repository": repository, "digest": digest}
