"""The record: order, digests, previews, streams put together again."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.digests import digest_bytes
from proctor.core.gatewaypolicy.assembly import MessageAssembler
from proctor.core.gatewaypolicy.pricing import Usage
from proctor.core.gatewaypolicy.sse import MAX_EVENT_BYTES, EventReader, ServerEvent, StreamTooWideError, render_stream
from proctor.core.ids import AttemptKey
from proctor.core.trajectory.events import EventKind, Status
from proctor.core.trajectory.trajectory_digest import digest_trajectory
from proctor.errors import Terminal
from proctor.gateway.recorder import Recorder
from support.gateway import CELL, RUN, MemorySink, say
from support.messages_server import render_events, reply_text, reply_tool

KEY = AttemptKey(RUN, CELL, 1)


def make_recorder(sink: MemorySink) -> tuple[Recorder, list[int]]:
    now = [0]
    return Recorder(KEY, sink, monotonic_ns=lambda: now[0]), now


def test_a_token_is_in_nothing_that_is_recorded() -> None:
    """S16, S30: whoever wrote it there, names, requests and results are kept without it, and add up all the same."""
    sink = MemorySink()
    recorder = Recorder(KEY, sink, secret=b"c0ffee")
    event = recorder.record(
        kind=EventKind.TOOL_CALL, name="/c0ffee", error_class="c0ffee", request=b"a c0ffee b", result=b"c0ffeec0ffee"
    )
    assert "c0ffee" not in repr(event)
    assert sink.blobs == {event.request_digest: b"a [token] b", event.result_digest: b"[token][token]"}
    assert recorder.mask_text("it printed c0ffee") == "it printed [token]"
    assert recorder.holds_secret(b"xc0ffeex")
    assert not recorder.holds_secret(b"decaf")
    assert not Recorder(KEY, sink).holds_secret(b"anything")


def test_events_are_numbered_when_they_are_over() -> None:
    """M-B1: no gaps, true durations, waiting kept apart, ids as OpenTelemetry has them."""
    sink = MemorySink()
    recorder, now = make_recorder(sink)
    first, second = recorder.start(), recorder.start()
    now[0] = 5_000_000
    recorder.record(kind=EventKind.TOOL_CALL, span=second, name="b")
    now[0] = 9_000_000
    recorder.record(kind=EventKind.MODEL_CALL, span=first, name="a", waited_us=4_000)
    events = sink.trajectory(KEY)
    assert [(event.seq, event.name, event.latency_us) for event in events] == [(1, "b", 5_000), (2, "a", 5_000)]
    assert len({event.span_id for event in events}) == 2
    assert {len(event.span_id) for event in events} == {16}
    assert {len(event.trace_id) for event in events} == {32}
    assert len({event.trace_id for event in events}) == 1


@given(st.text(max_size=400))
def test_previews_are_never_cut_inside_a_character(text: str) -> None:
    """M-B2, M-B8: the index has digest, size and a short preview; the body is in the blobs."""
    sink = MemorySink()
    recorder, _ = make_recorder(sink)
    body = text.encode()
    event = recorder.record(kind=EventKind.ANSWER, request=body)
    assert event.request_bytes == len(body)
    assert text.startswith(event.request_preview.removesuffix("…"))
    if body:
        assert sink.blobs[event.request_digest] == body
        assert event.request_digest == digest_bytes(body)


def test_a_sealed_trajectory_takes_nothing_more() -> None:
    """P30, S22: what was digested stays what it was, and can be checked from the stored rows."""
    sink = MemorySink()
    recorder, _ = make_recorder(sink)
    recorder.record(kind=EventKind.ATTEMPT_OPENED)
    recorder.record(kind=EventKind.MODEL_CALL, usage=Usage(1, 2, 3, 4), usd=Decimal("0.10"))
    digest = recorder.seal()
    with pytest.raises(Terminal):
        recorder.record(kind=EventKind.ANSWER)
    stored = sink.trajectory(KEY)
    assert digest_trajectory(stored) == digest
    rescaled = [
        replace(event, usd=None if event.usd is None else event.usd.quantize(Decimal("1e-12"))) for event in stored
    ]
    assert digest_trajectory(rescaled) == digest
    assert digest_trajectory([replace(stored[0], status=Status.DENIED), stored[1]]) != digest
    assert digest_trajectory(stored[::-1]) != digest


def test_words_from_strangers_are_short_and_clean() -> None:
    """S21: a tool's name is the agent's to choose; the record keeps its beginning, as text."""
    recorder, _ = make_recorder(MemorySink())
    event = recorder.record(kind=EventKind.TOOL_CALL, name="\ud800" + "x" * 1000)
    assert len(event.name) == 256
    assert event.name.encode()


def test_an_event_that_could_not_be_kept_takes_no_number() -> None:
    """M-B1: a full disk leaves no hole in the numbers."""
    sink = MemorySink()
    recorder, _ = make_recorder(sink)
    kept = sink.submit

    def refuse(**_: object) -> None:
        raise Terminal("spool: the disk is full")

    sink.submit = refuse  # type: ignore[method-assign]
    with pytest.raises(Terminal):
        recorder.record(kind=EventKind.ANSWER)
    sink.submit = kept  # type: ignore[method-assign]
    assert recorder.record(kind=EventKind.ANSWER).seq == 1


def assemble(pieces: list[bytes]) -> MessageAssembler:
    reader, assembler = EventReader(), MessageAssembler()
    for piece in pieces:
        for event in reader.feed(piece):
            assembler.feed(event)
    return assembler


MESSAGES = [
    reply_text("Ein kurzer Text mit Ümlauten und 🚀", output_tokens=11),
    reply_tool("run_query", {"query": "SELECT 'é'"}, text="I look."),
    reply_tool("noop", {}),
    reply_text(""),
]


@pytest.mark.parametrize("message", MESSAGES)
@given(size=st.integers(min_value=1, max_value=200))
def test_a_stream_is_put_together_again_however_it_is_cut(message: dict[str, object], size: int) -> None:
    """M-A8: the record of a streamed message is the message."""
    whole = b"".join(
        ServerEvent(name, json.dumps(payload).encode()).encode() for name, payload in render_events(message)
    )
    assembler = assemble([whole[start : start + size] for start in range(0, len(whole), size)])
    assert assembler.complete
    assert assembler.message() == message


@pytest.mark.parametrize("message", [say("hello"), *MESSAGES])
def test_a_scripted_message_survives_its_own_stream(message: dict[str, object]) -> None:
    """M-A8: streamed or not, a scripted model says the same."""
    again = assemble(list(render_stream(message))).message()
    assert again["content"] == message["content"]
    assert again["stop_reason"] == message["stop_reason"]


def test_an_event_without_end_is_refused() -> None:
    """S21: a line of 200 MB is no event; memory stays bounded."""
    reader = EventReader()
    for _ in range(MAX_EVENT_BYTES // 65536):
        list(reader.feed(b"x" * 65536))
    with pytest.raises(StreamTooWideError):
        list(reader.feed(b"x"))


@given(st.binary(max_size=500))
def test_nonsense_in_a_stream_breaks_nothing(noise: bytes) -> None:
    """S21: whatever a provider sends, reading it ends."""
    assembler = assemble([b"event: message_start\ndata: ", noise, b'\n\ndata: [1]\n\ndata: {"type": 7}\n\n'])
    assert assembler.message()["content"] == []
