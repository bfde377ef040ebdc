"""Bodies as people read them: what a tool was asked, what it said, what a model replied; cut, and saying so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from proctor.core.reports.inert import make_inert

_MOST_PARSED = 512 * 1024
"""Beyond, a body is shown as it is: only its beginning fits anyway."""
_BYTES_PER_SIGN = 4
_MOST_BLOCKS = 64

Shown = dict[str, Any]
"""``text``, and where it is not the whole: ``of``, the whole's size in bytes."""


class Body(NamedTuple):
    """A stored body, or what is left of it.

    Attributes:
        content: the body; None if it was not kept.
        preview: its first bytes, which always are.
        size: in bytes.
    """

    content: bytes | None
    preview: str
    size: int


def show_text(text: str, size: int, limit: int, *, whole: bool = True) -> Shown:
    """Return text as it is shown.

    Args:
        text: anybody's.
        size: of what it stands for, in bytes.
        limit: most signs shown.
        whole: the text is all there is.
    """
    shown: Shown = {"text": make_inert(text[:limit], keep_lines=True)}
    if len(text) > limit or not whole:
        shown["of"] = size
    return shown


def show_arguments(body: Body, limit: int) -> Shown | None:
    """Return what a tool was asked: one line per argument, texts as they are; None where nothing was asked."""
    if not body.size:
        return None
    parsed = _parse(body)
    if isinstance(parsed, dict):
        lines = (f"{key}: {value if isinstance(value, str) else _dump(value)}" for key, value in parsed.items())
        return show_text("\n".join(lines), body.size, limit)
    return _show_raw(body, limit)


def show_result(body: Body, limit: int) -> Shown | None:
    """Return what a tool said: the texts of its content; None where there is no result."""
    if not body.size:
        return None
    parsed = _parse(body)
    content = parsed.get("content") if isinstance(parsed, dict) else None
    if isinstance(content, list) and content:
        return show_text("\n".join(_block_texts(content)), body.size, limit)
    return _show_raw(body, limit)


def show_reply(body: Body, limit: int) -> tuple[Shown | None, tuple[str, ...]]:
    """Return what a model said, and the tools that it asked for."""
    parsed = _parse(body)
    content = parsed.get("content") if isinstance(parsed, dict) else None
    if not isinstance(content, list):
        return (_show_raw(body, limit) if body.size else None), ()
    blocks = [block for block in content[:_MOST_BLOCKS] if isinstance(block, dict)]
    calls = tuple(make_inert(str(block.get("name", "")))[:200] for block in blocks if block.get("type") == "tool_use")
    said = "\n".join(_block_texts([block for block in blocks if block.get("type") != "tool_use"]))
    return (show_text(said, body.size, limit) if said else None), calls


def find_body(digest: str, preview: str, size: int, bodies: Mapping[str, bytes]) -> Body:
    """Return a body by its digest, or what the record itself has of it."""
    return Body(bodies.get(digest) if digest else None, preview, size)


def _show_raw(body: Body, limit: int) -> Shown:
    if body.content is None:
        return show_text(
            body.preview, body.size, limit, whole=len(body.preview.encode("utf-8", "replace")) >= body.size
        )
    kept = body.content[: limit * _BYTES_PER_SIGN]
    return show_text(kept.decode("utf-8", "replace"), body.size, limit, whole=len(kept) >= body.size)


def _parse(body: Body) -> object:
    if body.content is None or len(body.content) > _MOST_PARSED:
        return None
    try:
        return json.loads(body.content)
    except (ValueError, RecursionError):
        return None


def _block_texts(content: list[Any]) -> Iterator[str]:
    for block in content[:_MOST_BLOCKS]:
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            yield block["text"]
        elif isinstance(block, dict) and isinstance(block.get("thinking"), str):
            yield f"[thinking] {block['thinking']}"
        else:
            kind = str(block.get("type", "block")) if isinstance(block, dict) else "block"
            yield f"[{kind}] {_dump(block)}"


def _dump(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(nested too deeply to be shown)"  # though it could just be read
