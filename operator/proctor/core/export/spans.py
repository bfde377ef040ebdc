"""Attempts as OpenTelemetry spans, after the GenAI semantic conventions; in OTLP's JSON encoding.

One trace per attempt: `invoke_agent` over all of it, `chat` and `execute_tool` below, and one event
`gen_ai.evaluation.result` per mark. Spans hold names, digests, sizes, counts and true times, and no text of prompts,
arguments, results or answers (M-B2); what a mark's reason quotes of an answer is in its explanation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from proctor.core.digests import digest_bytes
from proctor.core.trajectory.events import Event, EventKind, Status
from proctor.core.trajectory.outcome import AttemptRecord, Outcome

SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.1"
"""The last released schema that has the GenAI conventions: 1.42.0 moved them to a repository of their own, which has
released none yet."""

_INTERNAL, _CLIENT = 1, 3  # SpanKind
_OK, _ERROR = 1, 2  # StatusCode
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_JUDGE_MOST = 5
_SPANS = frozenset({EventKind.MODEL_CALL, EventKind.TOOL_CALL})
_ENDS = frozenset({EventKind.ATTEMPT_OPENED, EventKind.ATTEMPT_ENDED})
"""They are the root span's own ends."""

Values = Mapping[str, str | int | float | bool | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResource:
    """What all spans of a run have in common.

    Attributes:
        run: the run's name.
        uid: the run's.
        suite: the suite's name.
        version: of Proctor.
        agent: the runtime of its agents.
        providers: by model of the suite, the provider's name.
    """

    run: str
    uid: str
    suite: str
    version: str
    agent: str
    providers: Mapping[str, str]


def build_trace_request(
    resource: RunResource, record: AttemptRecord, events: Sequence[Event], cell: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return an attempt as one ExportTraceServiceRequest.

    Args:
        resource: the run.
        record: how the attempt went.
        events: its trajectory.
        cell: as run.json has it, with its marks; None for an attempt that doesn't count.
    """
    trace = events[0].trace_id if events else digest_bytes(str(record.key).encode())[:32]
    root = record.key.opaque_id[:16]
    provider = resource.providers.get(record.key.cell.model, "proctor")
    spans = [_build_root(resource, record, events, trace=trace, cell=cell)]
    spans += [
        _build_child(event, trace=trace, parent=root, provider=provider) for event in events if event.kind in _SPANS
    ]
    named = {
        "service.name": "proctor",
        "service.version": resource.version,
        "proctor.run.name": resource.run,
        "proctor.run.uid": resource.uid,
        "proctor.suite.name": resource.suite,
    }
    scope = {"name": "proctor", "version": resource.version}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(named)},
                "scopeSpans": [{"scope": scope, "spans": spans, "schemaUrl": SCHEMA_URL}],
                "schemaUrl": SCHEMA_URL,
            }
        ]
    }


def _build_root(
    resource: RunResource,
    record: AttemptRecord,
    events: Sequence[Event],
    *,
    trace: str,
    cell: Mapping[str, Any] | None,
) -> dict[str, Any]:
    key = record.key
    is_good = record.outcome is Outcome.COMPLETED
    values: Values = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": resource.providers.get(key.cell.model, "proctor"),
        "gen_ai.agent.name": resource.agent,
        "gen_ai.conversation.id": key.opaque_id,
        "gen_ai.request.model": next((event.name for event in events if event.kind is EventKind.MODEL_CALL), None),
        "gen_ai.usage.input_tokens": record.input_tokens,
        "gen_ai.usage.output_tokens": record.output_tokens,
        "error.type": None if is_good else record.outcome.value,
        "proctor.cell": str(key.cell),
        "proctor.scenario": key.cell.scenario,
        "proctor.server": key.cell.server,
        "proctor.model": key.cell.model,
        "proctor.replicate": key.cell.replicate,
        "proctor.attempt": key.attempt,
        "proctor.counts": cell is not None,
        "proctor.outcome": record.outcome.value,
        "proctor.usd": None if record.usd is None else format(record.usd, "f"),
        "proctor.answer.digest": record.answer_digest or None,
        "proctor.trajectory.digest": record.trajectory_digest,
        "proctor.score": _number((cell or {}).get("score")),
    }
    marks = _build_marks(cell or {}, record.ended)
    return {
        "traceId": trace,
        "spanId": key.opaque_id[:16],
        "name": f"invoke_agent {resource.agent}",
        "kind": _INTERNAL,
        "startTimeUnixNano": _nanoseconds(record.opened),
        "endTimeUnixNano": _nanoseconds(record.ended),
        "attributes": _attributes(values),
        "events": [_build_point(event) for event in events if event.kind not in _SPANS | _ENDS] + list(marks),
        "status": {"code": _OK if is_good else _ERROR},
    }


def _build_child(event: Event, *, trace: str, parent: str, provider: str) -> dict[str, Any]:
    is_call = event.kind is EventKind.MODEL_CALL
    values = _chat_values(event, provider) if is_call else _tool_values(event)
    failed = event.status is not Status.OK
    shared: Values = {
        "error.type": (event.error_class or event.status.value) if failed else None,
        "proctor.status": event.status.value,
        "proctor.retries": event.retry or None,
        "proctor.waited_us": event.waited_us or None,
        **_body_values(event),
    }
    end = event.ts + timedelta(microseconds=event.latency_us + event.waited_us)
    return {
        "traceId": trace,
        "spanId": event.span_id,
        "parentSpanId": parent,
        "name": _clean(f"{'chat' if is_call else 'execute_tool'} {event.name}").rstrip(),
        "kind": _CLIENT if is_call else _INTERNAL,
        "startTimeUnixNano": _nanoseconds(event.ts),
        "endTimeUnixNano": _nanoseconds(end),
        "attributes": _attributes({**values, **shared}),
        "status": {"code": _ERROR if failed else _OK},
    }


def _chat_values(event: Event, provider: str) -> Values:
    cached = event.cache_read_tokens + event.cache_write_tokens
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": event.name,
        "gen_ai.usage.input_tokens": event.input_tokens + cached,  # the conventions count cached ones in
        "gen_ai.usage.output_tokens": event.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": event.cache_read_tokens or None,
        "gen_ai.usage.cache_creation.input_tokens": event.cache_write_tokens or None,
        "proctor.usd": None if event.usd is None else format(event.usd, "f"),
    }


def _tool_values(event: Event) -> Values:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": event.name,
        "gen_ai.tool.type": "function",
        "mcp.method.name": "tools/call",
    }


def _body_values(event: Event) -> Values:
    return {
        "proctor.request.digest": event.request_digest or None,
        "proctor.request.bytes": event.request_bytes,
        "proctor.result.digest": event.result_digest or None,
        "proctor.result.bytes": event.result_bytes,
    }


def _build_point(event: Event) -> dict[str, Any]:
    values: Values = {
        "proctor.name": event.name or None,
        "proctor.status": event.status.value,
        "error.type": event.error_class or None,
        **_body_values(event),
    }
    return _event(f"proctor.{event.kind.value}", event.ts, values)


def _build_marks(cell: Mapping[str, Any], when: datetime) -> Iterator[dict[str, Any]]:
    for mark in (cell.get("programmatic") or {}).get("checks", []):
        met = bool(mark.get("satisfied"))
        yield _evaluate(when, str(mark.get("id")), float(met), label="pass" if met else "fail", why=mark.get("why"))
    for mark in (cell.get("judgement") or {}).get("marks", []):
        given = _number(mark.get("score")) or 0.0
        label = f"{given:g} of {_JUDGE_MOST}"
        yield _evaluate(when, f"judge: {mark.get('id')}", given / _JUDGE_MOST, label=label, why=mark.get("why"))
    score = _number(cell.get("score"))
    if score is not None:
        yield _evaluate(when, "score", score)


def _evaluate(
    when: datetime, name: str, value: float, *, label: str | None = None, why: str | None = None
) -> dict[str, Any]:
    values: Values = {
        "gen_ai.evaluation.name": name,
        "gen_ai.evaluation.score.value": value,
        "gen_ai.evaluation.score.label": label,
        "gen_ai.evaluation.explanation": why or None,
    }
    return _event("gen_ai.evaluation.result", when, values)


def _event(name: str, when: datetime, values: Values) -> dict[str, Any]:
    return {"timeUnixNano": _nanoseconds(when), "name": name, "attributes": _attributes(values)}


def _attributes(values: Values) -> list[dict[str, Any]]:
    """Return attributes in OTLP's JSON encoding, those without a value left out; 64-bit integers are text there."""
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None]


def _value(value: str | float | bool) -> dict[str, Any]:  # noqa: FBT001 - a value among values
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": _clean(value)}


def _clean(text: str) -> str:
    """Return text that is UTF-8: lone surrogates are none."""
    return text.encode("utf-8", "replace").decode()


def _number(value: object) -> float | None:
    return None if value is None else float(str(value))


def _nanoseconds(instant: datetime) -> str:
    return str((instant - _EPOCH) // timedelta(microseconds=1) * 1000)
