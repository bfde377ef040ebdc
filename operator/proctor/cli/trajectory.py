"""A trajectory as text for a terminal: whatever agents, models and servers said is shown, and none of it acts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from proctor.core.reports.inert import make_inert
from proctor.core.trajectory.events import Event, EventKind, Status
from proctor.core.trajectory.outcome import AnswerSource, AttemptRecord

_PREVIEW_SIGNS = 160
_INDENT = " " * 11


def render_trajectory(
    record: AttemptRecord, events: tuple[Event, ...], bodies: Mapping[str, bytes], *, full: bool = False
) -> str:
    """Render an attempt, event by event.

    Args:
        record: how it ended.
        events: in order.
        bodies: requests and results by digest.
        full: show whole bodies instead of their beginnings.
    """
    lines = [
        f"{record.key.cell}, attempt {record.key.attempt}: {record.outcome.value} ({make_inert(record.reason)})",
        f"{record.turns} turns, {record.tool_calls} tool calls, {record.input_tokens + record.output_tokens} tokens, "
        f"{_render_seconds((record.ended - record.opened).total_seconds())}"
        + (f", ${record.usd:f}" if record.usd is not None else ""),
        "",
    ]
    for event in events:
        lines += _render_event(event, record.opened, bodies, full=full)
    lines += ["", *_render_answer(record, events, bodies)]
    return "\n".join(lines)


def render_marks(cell: Mapping[str, Any]) -> str:
    """Render a cell's grade: its score, its parts, and why each mark was given."""
    if cell.get("score") is None:
        return f"ungraded: {make_inert(str(cell['ungraded']))}" if cell.get("ungraded") else "not graded"
    programmatic = cell.get("programmatic") or {}
    judge = f", judge {cell['judge']}" if cell.get("judge") is not None else ""
    parts = f"programmatic {programmatic.get('score', '–')}{judge}, penalty {cell.get('penalty', '0')}"
    lines = [f"score {cell['score']}: {parts}"]
    for check in programmatic.get("checks", []):
        sign = "✓" if check.get("satisfied") else "✗"
        name = make_inert(str(check.get("id", "")))
        why = make_inert(str(check.get("why", "")))
        lines.append(f"  {sign} {name} ({check.get('polarity', '')}, weight {check.get('weight', '')}): {why}")
    for mark in (cell.get("judgement") or {}).get("marks", []):
        name, why = make_inert(str(mark.get("id", ""))), make_inert(str(mark.get("why", "")))
        lines.append(f"  {mark.get('score', '–')}/5 {name} (judge, weight {mark.get('weight', '')}): {why}")
    return "\n".join(lines)


def _render_event(event: Event, opened: datetime, bodies: Mapping[str, bytes], *, full: bool) -> Iterator[str]:
    after = max((event.ts - opened).total_seconds(), 0.0)
    head = f"{after:8.2f} s {event.kind.value}"
    if event.name:
        head += f" {make_inert(event.name)}"
    head += f"  {event.latency_us / 1000:.0f} ms"
    if event.waited_us:
        head += f" (+{event.waited_us / 1e6:.1f} s waiting)"
    if event.input_tokens or event.output_tokens:
        head += f", {event.input_tokens}+{event.output_tokens} tokens"
    if event.status is not Status.OK:
        head += f"  [{event.status.value}: {make_inert(event.error_class)}]"
    yield head
    # A model call repeats the whole conversation: its reply is what is new.
    if event.kind is not EventKind.MODEL_CALL or full:
        yield from _render_body("→", event.request_digest, event.request_preview, bodies, full=full)
    if event.kind is EventKind.MODEL_CALL and not full:
        yield from _render_reply(bodies.get(event.result_digest))
    elif event.kind is not EventKind.ATTEMPT_ENDED:
        yield from _render_body("←", event.result_digest, event.result_preview, bodies, full=full)


def _render_body(arrow: str, digest: str, preview: str, bodies: Mapping[str, bytes], *, full: bool) -> Iterator[str]:
    if not digest:
        return
    if full and digest in bodies:
        text = make_inert(bodies[digest].decode("utf-8", "replace"), keep_lines=True)
        for line in text.splitlines() or [""]:
            yield f"{_INDENT}{arrow} {line}"
        return
    yield f"{_INDENT}{arrow} {_cut(make_inert(preview))}"


def _render_reply(body: bytes | None) -> Iterator[str]:
    """Show what a model said and asked for; nothing where the reply can't be read."""
    try:
        content = json.loads(body or b"")["content"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    for block in content if isinstance(content, list) else []:
        if not isinstance(block, dict):
            continue
        if block.get("type") == "text":
            yield f"{_INDENT}← {_cut(make_inert(str(block.get('text', ''))))}"
        if block.get("type") == "tool_use":
            arguments = json.dumps(block.get("input"), ensure_ascii=False)
            yield f"{_INDENT}← calls {make_inert(str(block.get('name', '')))} {_cut(make_inert(arguments))}"


def _render_answer(record: AttemptRecord, events: tuple[Event, ...], bodies: Mapping[str, bytes]) -> Iterator[str]:
    if record.answer_source is AnswerSource.NONE:
        yield "no answer"
        return
    body = bodies.get(record.answer_digest)
    last = events[-1].result_preview if events else ""
    text = last if body is None else body.decode("utf-8", "replace")
    yield f"answer ({record.answer_source.value}):"
    yield from (f"  {line}" for line in make_inert(text, keep_lines=True).splitlines())


def _cut(text: str) -> str:
    return text if len(text) <= _PREVIEW_SIGNS else text[:_PREVIEW_SIGNS] + "…"


def _render_seconds(seconds: float) -> str:
    return f"{seconds:.1f} s"
