"""One cell's trajectory and marks as the page's script reads them: plain values, every text inert and cut."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from proctor.core.reports.inert import make_inert
from proctor.core.reports.page.bodies import Body, Shown, find_body, show_arguments, show_reply, show_result, show_text
from proctor.core.reports.page.facts import CellFacts, CellTrajectory, MarkFacts
from proctor.core.reports.page.numbers import render_count, render_duration, render_usd
from proctor.core.trajectory.events import Event, EventKind, Status
from proctor.core.trajectory.outcome import AnswerSource, AttemptRecord

_MOST_LINE = 600
_MOST_NAME = 120
_WITH_BODIES = frozenset({EventKind.MODEL_CALL, EventKind.TOOL_CALL, EventKind.DENIED, EventKind.MCP_MESSAGE})

_ANSWERED: Mapping[AnswerSource, str] = {
    AnswerSource.PUT: "sent by the agent",
    AnswerSource.LAST_TEXT: "the last text of the model",
    AnswerSource.NONE: "",
}


@dataclass(frozen=True, slots=True)
class Cut:
    """How much of a cell is shown.

    Attributes:
        signs: most of one body.
        events: most events.
    """

    signs: int
    events: int


def describe_cell(cell: CellFacts, trajectory: CellTrajectory | None, cut: Cut) -> dict[str, Any]:
    """Return what the page's script shows of a cell.

    Args:
        cell: as run.json has it.
        trajectory: None where nothing is stored.
        cut: how much is shown.
    """
    described: dict[str, Any] = {
        "cell": make_inert(str(cell.key)),
        "facts": _facts(cell, trajectory),
        "grade": _grade(cell),
        "marks": [_mark(mark) for mark in cell.marks],
        "others": [] if trajectory is None else [_other(record) for record in trajectory.others],
        "events": [],
        "left": 0,
    }
    if trajectory is None:
        return described
    record, events = trajectory.record, trajectory.events
    turn = 0
    for event in events[: cut.events]:
        shown = _event(event, record.opened, trajectory.bodies, cut)
        if event.kind is EventKind.MODEL_CALL:
            turn += 1
            shown["turn"] = turn
        described["events"].append(shown)
    described["left"] = max(0, len(events) - cut.events)
    described["span"] = _span(record, events)
    described["answer"] = _answer(trajectory, cut)
    described["answered"] = _ANSWERED[record.answer_source]
    return described


def _facts(cell: CellFacts, trajectory: CellTrajectory | None) -> list[tuple[str, str]]:
    facts = [
        ("Outcome", f"{cell.outcome.value.replace('_', ' ') if cell.outcome else cell.state} — {cell.reason}"),
        ("Attempt", f"{cell.attempt or '–'} of {cell.attempts}"),
        ("Turns", str(cell.turns)),
        ("Tool calls", f"{cell.tool_calls}, {cell.tool_errors} failed"),
        ("Tokens", f"{render_count(cell.input_tokens)} in, {render_count(cell.output_tokens)} out"),
        ("USD", render_usd(cell.usd)),
        ("Time", render_duration(cell.seconds) + (f", {cell.waited:.1f} s more waiting" if cell.waited else "")),
    ]
    if trajectory is not None:
        facts.append(("Trajectory digest", trajectory.record.trajectory_digest))
    return [(label, make_inert(value)[:_MOST_LINE]) for label, value in facts]


def _grade(cell: CellFacts) -> str:
    if cell.score is None:
        return make_inert(f"No grade: {cell.ungraded or cell.reason or cell.state}")[:_MOST_LINE]
    parts = [f"checks {cell.programmatic or '–'}"]
    if cell.judge:
        parts.append(f"judge {cell.judge}")
    if cell.penalty and float(cell.penalty):
        parts.append(f"penalty for tool mistakes {cell.penalty}")
    remark = f". {cell.remark}" if cell.remark else ""
    return make_inert(f"Score {cell.score}: {', '.join(parts)}{remark}")[:_MOST_LINE]


def _mark(mark: MarkFacts) -> dict[str, Any]:
    shown = {"id": _name(mark.id), "weight": mark.weight, "why": make_inert(mark.why)[:_MOST_LINE]}
    if mark.judged:
        return shown | {"score": mark.score, "votes": list(mark.votes)}
    return shown | {"met": mark.satisfied, "polarity": mark.polarity}


def _other(record: AttemptRecord) -> str:
    why = make_inert(record.reason)[:_MOST_LINE]
    return f"attempt {record.key.attempt}: {record.outcome.value.replace('_', ' ')} — {why}"


def _event(event: Event, opened: datetime, bodies: Mapping[str, bytes], cut: Cut) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "kind": event.kind,
        "name": _name(event.name),
        "at": max(0, round((event.ts - opened).total_seconds() * 1000)),
        "ms": round(event.latency_us / 1000, 1),
    }
    if event.waited_us:
        shown["waited"] = round(event.waited_us / 1000)
    if event.status is not Status.OK:
        shown["status"] = event.status
        shown["error"] = _name(event.error_class)
    if event.retry:
        shown["retry"] = event.retry
    if event.kind in _WITH_BODIES:
        shown.update(_bodies(event, bodies, cut))
    return shown


def _bodies(event: Event, bodies: Mapping[str, bytes], cut: Cut) -> dict[str, Any]:
    said = find_body(event.result_digest, event.result_preview, event.result_bytes, bodies)
    if event.kind is EventKind.MODEL_CALL:
        # A request repeats the whole conversation: the reply is what is new.
        text, calls = show_reply(said, cut.signs)
        usd = {} if event.usd is None else {"usd": render_usd(event.usd)}
        return {"said": text, "calls": calls, "in": event.input_tokens, "out": event.output_tokens, **usd}
    asked = find_body(event.request_digest, event.request_preview, event.request_bytes, bodies)
    size = {"bytes": event.result_bytes} if event.kind is EventKind.TOOL_CALL else {}
    return {"asked": show_arguments(asked, cut.signs), "said": show_result(said, cut.signs), **size}


def _span(record: AttemptRecord, events: tuple[Event, ...]) -> int:
    """Return the attempt's length in milliseconds: what the bars of its events are shares of."""
    ends = [(record.ended - record.opened).total_seconds() * 1000]
    ends += [(event.ts - record.opened).total_seconds() * 1000 + event.latency_us / 1000 for event in events]
    return max(1, round(max(ends)))


def _answer(trajectory: CellTrajectory, cut: Cut) -> Shown | None:
    record = trajectory.record
    if record.answer_source is AnswerSource.NONE:
        return None
    body = trajectory.bodies.get(record.answer_digest)
    if body is not None:
        return show_text(body.decode("utf-8", "replace"), len(body), 4 * cut.signs)
    last = trajectory.events[-1] if trajectory.events else None
    kept = Body(None, "", 0) if last is None else Body(None, last.result_preview, last.result_bytes)
    return show_text(kept.preview, kept.size, 4 * cut.signs, whole=len(kept.preview.encode()) >= kept.size)


@functools.lru_cache(maxsize=1024)
def _name(text: str) -> str:
    inert = make_inert(text)
    return inert if len(inert) <= _MOST_NAME else inert[: _MOST_NAME - 1] + "…"
