"""JSON-RPC: what is a message, and what is told apart."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.adapters.mcp.events import EventReader, EventTooLargeError
from proctor.adapters.mcp.jsonrpc import (
    InvalidMessage,
    Notification,
    Request,
    RpcError,
    RpcResult,
    encode,
    parse_message,
    peek_id,
    splice_result,
)
from proctor.adapters.mcp.launch import DatasetAccess, ServerCommand

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"m"}', Request(1, "m", {})),
        (b'{"jsonrpc":"2.0","id":"x","method":"m","params":{"a":1}}', Request("x", "m", {"a": 1})),
        (b'{"jsonrpc":"2.0","method":"m","params":null}', Notification("m", {})),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', RpcResult(1, {})),
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"x"}}', RpcError(None, -1, "x")),
        (b'{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"x","data":[1]}}', RpcError(2, -1, "x", [1])),
    ],
)
def test_messages(body: bytes, message: object) -> None:
    """M-B1: each kind is read for what it is."""
    assert parse_message(body) == message


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"[]",
        b"1",
        b"{}",
        b'{"jsonrpc":"1.0","id":1,"method":"m"}',
        b'{"jsonrpc":"2.0","id":true,"method":"m"}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"m"}',
        b'{"jsonrpc":"2.0","id":1,"method":7}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":[]}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1}}',
        b'{"jsonrpc":"2.0","id":1,"result":[]}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":"1"}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":' + b"9" * 5000 + b"}}",
        b'{"jsonrpc":"2.0","id":1,"result":{"a":1e999}}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_message(body: bytes) -> None:
    """S18, S21: hostile bytes are refused, whatever they are, and never crash."""
    with pytest.raises(InvalidMessage):
        parse_message(body)


@given(st.binary())
def test_any_bytes_are_a_message_or_are_refused(body: bytes) -> None:
    """S21: nothing else can happen."""
    try:
        parse_message(body)
    except InvalidMessage:
        return


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_results_pass_as_they_came(result: dict[str, object]) -> None:
    """M-A8: nothing is dropped, added or reordered."""
    body = splice_result("id", encode(result))
    assert b"\n" not in body
    assert parse_message(body) == RpcResult("id", result)
    assert list(json.loads(body)["result"]) == list(result)


def test_lone_surrogates_stay_escaped() -> None:
    """M-B8: what UTF-8 can't carry is carried as JSON carries it."""
    assert json.loads(encode({"t": "\ud800é"})) == {"t": "\ud800é"}


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"content":', 7),
        (b'{ "jsonrpc" : "2.0" , "id" : 12 , "result"', 12),
        (b'{"id":3,"jsonrpc"', 3),
        (b'{"jsonrpc":"2.0","result":{"id":9,', None),
        (b"\xff\xfe", None),
    ],
)
def test_the_id_of_a_message_that_is_cut(head: bytes, found: int | None) -> None:
    """The call that got too large an answer is told apart from the calls beside it."""
    assert peek_id(head) == found


@given(st.lists(st.integers(1, 40), max_size=30))
def test_events_are_cut_whatever_the_pieces(sizes: list[int]) -> None:
    """A stream that arrives byte by byte reads like one that arrives whole."""
    body = b': hi\n\nid: 1\nretry: 20\ndata: {"a":1}\r\n\ndata: x\ndata: y\n\nid: 2\ndata:\n\n'
    reader = EventReader(1000)
    events = []
    at = 0
    for size in [*sizes, len(body)]:
        events += reader.feed(body[at : at + size])
        at += size
    assert [(event.data, event.id, event.retry_ms) for event in events if event.data or event.id] == [
        (b'{"a":1}', "1", 20),
        (b"x\ny", "1", 20),
        (b"", "2", 20),
    ]


def test_an_event_without_end_is_given_up() -> None:
    """Memory is bounded: 200 MB in one event are never held."""
    reader = EventReader(1000)
    for _ in range(9):
        assert list(reader.feed(b"data: " + b"x" * 100)) == []
    with pytest.raises(EventTooLargeError):
        list(reader.feed(b"x" * 100))


def test_a_servers_environment_is_bare() -> None:
    """S15, S17: only what the manifest names; passwords don't show in a repr."""
    command = ServerCommand("s", ("x",), {"A": "1", "T": "s3cret"}, {"H": "host", "P": "port", "W": "password"}, "/bin")
    dataset = DatasetAccess("h", 9, "u", "hunter2", "d")
    assert command.environment(dataset) == {"PATH": "/bin", "A": "1", "T": "s3cret", "H": "h", "P": "9", "W": "hunter2"}
    assert "s3cret" not in repr(command)
    assert "hunter2" not in repr(dataset)
