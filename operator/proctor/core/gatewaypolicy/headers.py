"""Headers to and from the provider: written anew from a closed list, never copied (S15)."""

from __future__ import annotations

from collections.abc import Mapping

from proctor.core.gatewaypolicy.refusal import RefusalCode, Refused
from proctor.core.gatewaypolicy.wire import Headers

API_VERSION = "2026-10-21"
"""What is spoken for an agent that names no revision of the API, or one that is not known here."""

_KEY_HEADER_VERSION = "2023-06-01"
"""The older revision; its clients send the key as ``x-api-key``, those of the newer one as a bearer token."""

_VERSIONS = frozenset({API_VERSION, _KEY_HEADER_VERSION})

ALLOWED_BETAS = frozenset(
    {
        "claude-code-20250219",
        "context-1m-2025-08-07",
        "context-management-2025-06-27",
        "effort-2025-11-24",
        "extended-cache-ttl-2025-04-11",
        "fine-grained-tool-streaming-2025-05-14",
        "interleaved-thinking-2025-05-14",
        "output-128k-2025-02-19",
        "prompt-caching-2024-07-31",
        "prompt-caching-scope-2026-01-05",
        "structured-outputs-2025-11-13",
        "token-efficient-tools-2025-02-19",
        "dev-full-thinking-2025-05-14",
        "thinking-token-count-2026-05-13",
    }
)
"""Betas that change how a model thinks, caches or writes. Others are dropped: the provider then never sees them."""

FORBIDDEN_BETAS = (
    "advisor-tool",
    "agent",
    "code-execution",
    "computer-use",
    "files-api",
    "managed-agents",
    "mcp-",
    "message-batches",
    "search-results",
    "server-side",
    "skills",
    "web-",
)
"""Beginnings of betas that reach beyond the model: asking for one is refused and recorded, not just dropped (S32)."""

_MAX_BETAS = 64
_PASSED_BACK = ("content-type", "request-id")


def select_betas(headers: Headers) -> tuple[str, ...]:
    """Return the betas that may be passed on, in order.

    Raises:
        Refused: one of them reaches beyond the model.
    """
    asked = [
        beta.strip()
        for key, value in headers
        if key.lower() == b"anthropic-beta"
        for beta in value.decode("latin-1").split(",")
    ]
    if len(asked) > _MAX_BETAS or any(beta.startswith(FORBIDDEN_BETAS) for beta in asked):
        raise Refused(RefusalCode.HEADER, "anthropic-beta asks for what reaches beyond the model", status=403)
    return tuple(dict.fromkeys(beta for beta in asked if beta in ALLOWED_BETAS))


def select_version(headers: Headers) -> str:
    """Return the revision of the API to speak: the agent's, if it is known here."""
    asked = {value.decode("latin-1").strip() for key, value in headers if key.lower() == b"anthropic-version"}
    return next(iter(asked)) if len(asked) == 1 and asked <= _VERSIONS else API_VERSION


def build_provider_headers(key: str, *, version: str, betas: tuple[str, ...], stream: bool) -> dict[str, str]:
    """Return all headers of a request to the provider; nothing of the agent's own is among them."""
    headers = {
        "accept": "text/event-stream" if stream else "application/json",
        # A compressed reply would have to be bounded before and after unpacking.
        "accept-encoding": "identity",
        "anthropic-version": version,
        "content-type": "application/json",
        "user-agent": "proctor-gateway",
    }
    if version == _KEY_HEADER_VERSION:
        headers["x-api-key"] = key
    else:
        headers["authorization"] = f"Bearer {key}"
    if betas:
        headers["anthropic-beta"] = ",".join(betas)
    return headers


def select_reply_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a provider's reply that an agent gets to see."""
    return {name: headers[name] for name in _PASSED_BACK if name in headers}
