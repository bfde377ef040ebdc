"""Content blocks of a Messages request: which kinds pass, and which keys each may have (S32)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from proctor.core.gatewaypolicy.refusal import RefusalCode, Refused

_MAX_SHOWN = 60


def refuse_body(where: str, problem: str) -> Refused:
    """Return the refusal of a body; it names the place, and quotes at most a key of it."""
    return Refused(RefusalCode.BODY, f"{where}: {problem}", status=403)


def check_keys(value: object, allowed: frozenset[str], where: str) -> Mapping[str, Any]:
    """Return an object all of whose keys are allowed.

    Raises:
        Refused: it is no object, or has another key.
    """
    if not isinstance(value, dict):
        raise refuse_body(where, "not an object")
    odd = next((key for key in value if key not in allowed), None)
    if odd is not None:
        raise refuse_body(where, f"{odd[:_MAX_SHOWN]!r} is not passed on")
    return value


def check_list(value: object, where: str, *, most: int) -> list[Any]:
    """Return a list that is not too long.

    Raises:
        Refused: it is none, or longer.
    """
    if not isinstance(value, list) or len(value) > most:
        raise refuse_body(where, f"not a list of at most {most}")
    return value


def check_content(value: object, kinds: frozenset[str], where: str) -> None:
    """Check the content of a message or of a tool's result: a text, or blocks of certain kinds.

    Raises:
        Refused: a block is of another kind, or has a key that is not passed on.
    """
    if isinstance(value, str):
        return
    for index, block in enumerate(check_list(value, where, most=_MAX_BLOCKS)):
        place = f"{where}.{index}"
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(kind, str) or kind not in kinds:
            raise refuse_body(place, f"blocks of type {str(kind)[:_MAX_SHOWN]!r} are not passed on")
        check_keys(block, _KEYS[kind], place)
        if "cache_control" in block:
            check_cache_control(block["cache_control"], place)
        _CHECKS.get(kind, _check_nothing)(block, place)


def check_cache_control(value: object, where: str) -> None:
    """Check a cache mark.

    Raises:
        Refused: it has a key that is not passed on.
    """
    if value is not None:
        check_keys(value, _CACHE_KEYS, f"{where}.cache_control")


_MAX_BLOCKS = 10_000
_CACHE_KEYS = frozenset({"type", "ttl", "scope"})
_KEYS = {
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "image": frozenset({"type", "source", "cache_control"}),
    "document": frozenset({"type", "source", "cache_control", "title", "context", "citations"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "tool_use": frozenset({"type", "id", "name", "input", "cache_control", "caller"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control"}),
}
MESSAGE_KINDS = frozenset(_KEYS)
TEXT_KINDS = frozenset({"text"})
_RESULT_KINDS = frozenset({"text", "image", "document"})
_NESTED_KINDS = frozenset({"text", "image"})
_BASE64_KEYS = frozenset({"type", "media_type", "data"})
_CITATION_TYPES = frozenset({"char_location", "page_location", "content_block_location"})


def _check_text(block: Mapping[str, Any], where: str) -> None:
    for citation in block.get("citations") or ():
        if not isinstance(citation, dict) or citation.get("type") not in _CITATION_TYPES:
            raise refuse_body(f"{where}.citations", "only places in the conversation can be cited")


def _check_image(block: Mapping[str, Any], where: str) -> None:
    source = check_keys(block.get("source"), _BASE64_KEYS, f"{where}.source")
    if source.get("type") != "base64":
        raise refuse_body(f"{where}.source", "only bytes in the request itself are passed on, no URLs and no files")


def _check_document(block: Mapping[str, Any], where: str) -> None:
    source = block.get("source")
    place = f"{where}.source"
    kind = source.get("type") if isinstance(source, dict) else None
    if kind == "content":
        inner = check_keys(source, frozenset({"type", "content"}), place)
        check_content(inner.get("content"), _NESTED_KINDS, f"{place}.content")
        return
    check_keys(source, _BASE64_KEYS, place)
    if kind not in ("base64", "text"):
        raise refuse_body(place, "only bytes in the request itself are passed on, no URLs and no files")


def _check_tool_use(block: Mapping[str, Any], where: str) -> None:
    caller = block.get("caller")
    if caller is not None and caller != {"type": "direct"}:
        raise refuse_body(f"{where}.caller", "only the model itself calls tools here")


def _check_tool_result(block: Mapping[str, Any], where: str) -> None:
    if block.get("content") is not None:
        check_content(block["content"], _RESULT_KINDS, f"{where}.content")


def _check_nothing(block: Mapping[str, Any], where: str) -> None:
    """Accept a block of which the keys say all."""


_CHECKS: Mapping[str, Callable[[Mapping[str, Any], str], None]] = {
    "text": _check_text,
    "image": _check_image,
    "document": _check_document,
    "tool_use": _check_tool_use,
    "tool_result": _check_tool_result,
}
