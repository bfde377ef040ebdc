"""`proctor export --format otlp`: attempts as spans that any OpenTelemetry backend reads."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from opentelemetry.semconv._incubating.attributes import gen_ai_attributes, mcp_attributes
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.semconv.schemas import Schemas

from proctor.core.export.spans import SCHEMA_URL, RunResource, build_trace_request
from proctor.core.trajectory.events import EventKind, Status
from proctor.core.trajectory.outcome import Outcome
from support.otlp import attributes_of, parse_trace_request
from support.results import ANCHOR, make_attempt, make_event, make_key

RESOURCE = RunResource(
    run="quick-1", uid="4f1c", suite="quick", version="0.1.0", agent="Builtin", providers={"loudest": "anthropic"}
)
SECRET = "what the agent was told"
EVENTS = (
    make_event(1, kind=EventKind.ATTEMPT_OPENED, name=""),
    make_event(2, kind=EventKind.BRIEF_READ, name="", result_preview=SECRET, result_digest="ab" * 32, result_bytes=23),
    make_event(
        3,
        kind=EventKind.MODEL_CALL,
        name="claude-x",
        request_preview=SECRET,
        input_tokens=100,
        output_tokens=7,
        cache_read_tokens=30,
        cache_write_tokens=4,
        latency_us=1_500_000,
        waited_us=500_000,
        retry=2,
    ),
    make_event(4, name="run_query", status=Status.SERVER_ERROR, error_class="tool_error", result_preview=SECRET),
    make_event(5, kind=EventKind.DENIED, name="web_search", status=Status.DENIED, error_class="provider_tool"),
    make_event(6, kind=EventKind.ATTEMPT_ENDED, name=""),
)
CELL: dict[str, Any] = {
    "score": "0.8125",
    "programmatic": {
        "checks": [
            {"id": "names-the-service", "satisfied": True, "why": "line 2"},
            {"id": "blames-no-decoy", "satisfied": False, "why": "line 3"},
        ]
    },
    "judgement": {"marks": [{"id": "reasoning", "score": "4", "why": "sound"}]},
}


def build(**changes: Any) -> Any:
    return parse_trace_request(json.dumps(build_trace_request(RESOURCE, make_attempt(**changes), EVENTS, CELL)))


def spans_of(request: Any) -> list[Any]:
    return list(request.resource_spans[0].scope_spans[0].spans)


def test_it_is_otlp_with_a_pinned_schema() -> None:
    """Export: the official protocol parses it; its schema is one that was released."""
    request = build()
    (resource,) = request.resource_spans
    assert resource.schema_url == resource.scope_spans[0].schema_url == SCHEMA_URL
    assert SCHEMA_URL in {schema.value for schema in Schemas}
    assert attributes_of(resource.resource)["service.name"] == "proctor"


def test_names_are_those_of_the_conventions() -> None:
    """M-C2: every attribute is one of the GenAI, MCP or error conventions, or in this project's own namespace."""
    known = {
        value
        for module in (gen_ai_attributes, mcp_attributes, error_attributes)
        for name, value in vars(module).items()
        if name.isupper()
    }
    used = {key for span in spans_of(build()) for thing in (span, *span.events) for key in attributes_of(thing)}
    assert {key for key in used if not key.startswith("proctor.")} <= known
    operations = {attributes_of(span)["gen_ai.operation.name"] for span in spans_of(build())}
    assert operations == {"invoke_agent", "chat", "execute_tool"}
    assert operations <= {value.value for value in gen_ai_attributes.GenAiOperationNameValues}


def test_times_and_parents_are_true() -> None:
    """M-A8: one trace per attempt; a call lies where it happened, its waiting included."""
    root, chat, tool = spans_of(build())
    assert root.parent_span_id == b""
    assert {span.parent_span_id for span in (chat, tool)} == {root.span_id}
    assert len({span.trace_id for span in (root, chat, tool)}) == 1
    assert root.end_time_unix_nano - root.start_time_unix_nano == 3_000_007_000
    assert chat.start_time_unix_nano == (int(ANCHOR.timestamp()) * 1_000_000 + 123_456 + 3) * 1000
    assert chat.end_time_unix_nano - chat.start_time_unix_nano == 2_000_000_000
    assert chat.span_id == bytes.fromhex(EVENTS[2].span_id)


def test_ids_are_the_same_in_every_export() -> None:
    """Who exports twice gets the same spans; another attempt has another root."""
    assert build() == build()
    other = spans_of(build(key=make_key(attempt=2)))[0]
    assert other.span_id != spans_of(build())[0].span_id


def test_calls_say_what_they_used_and_how_they_failed() -> None:
    """M-C2, M-B1: tokens as the conventions count them, errors by class, digests and sizes."""
    root, chat, tool = spans_of(build())
    values = attributes_of(chat)
    assert (chat.name, values["gen_ai.provider.name"], values["gen_ai.request.model"]) == (
        "chat claude-x",
        "anthropic",
        "claude-x",
    )
    assert (values["gen_ai.usage.input_tokens"], values["gen_ai.usage.cache_read.input_tokens"]) == (134, 30)
    assert values["proctor.waited_us"] == 500_000
    assert (tool.name, attributes_of(tool)["error.type"], tool.status.code) == (
        "execute_tool run_query",
        "tool_error",
        2,
    )
    assert [event.name for event in root.events][:2] == ["proctor.brief_read", "proctor.denied"]
    assert attributes_of(root)["proctor.outcome"] == "completed"
    lost = spans_of(build(outcome=Outcome.INFRA_ERROR, usd=Decimal("0.5")))[0]
    assert (lost.status.code, attributes_of(lost)["error.type"]) == (2, "infra_error")


def test_marks_are_evaluation_events() -> None:
    """Export: one `gen_ai.evaluation.result` per mark, with name, score, label and explanation."""
    root = spans_of(build())[0]
    marks = [attributes_of(event) for event in root.events if event.name == "gen_ai.evaluation.result"]
    shown = [
        (
            mark["gen_ai.evaluation.name"],
            mark["gen_ai.evaluation.score.value"],
            mark.get("gen_ai.evaluation.score.label"),
            mark.get("gen_ai.evaluation.explanation"),
        )
        for mark in marks
    ]
    assert shown == [
        ("names-the-service", 1.0, "pass", "line 2"),
        ("blames-no-decoy", 0.0, "fail", "line 3"),
        ("judge: reasoning", 0.8, "4 of 5", "sound"),
        ("score", 0.8125, None, None),
    ]


def test_attempt_that_does_not_count_has_no_marks() -> None:
    """Grading rule 9: what infrastructure failed is no evidence about the agent."""
    record = make_attempt(outcome=Outcome.INFRA_ERROR)
    line = json.dumps(build_trace_request(RESOURCE, record, (), None))
    (root,) = spans_of(parse_trace_request(line))
    assert not root.events
    assert attributes_of(root)["proctor.counts"] is False


def test_no_text_of_prompts_or_results() -> None:
    """M-B2: spans hold digests and sizes, never what was said."""
    line = json.dumps(build_trace_request(RESOURCE, make_attempt(), EVENTS, CELL))
    assert SECRET not in line


def test_hostile_names_make_no_invalid_text() -> None:
    """A lone surrogate, a NUL or an escape in a tool's name is still valid OTLP."""
    hostile = replace(EVENTS[3], name="\ud800\x00\x1b[2J", ts=ANCHOR + timedelta(seconds=1))
    line = json.dumps(build_trace_request(RESOURCE, make_attempt(), (hostile,), CELL))
    assert attributes_of(spans_of(parse_trace_request(line))[1])["gen_ai.tool.name"] == "?\x00\x1b[2J"
