"""What Preflight calls where no control cell plays through a server, and what an answer says about the server."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.adapters.mcp.channel import Failed
from proctor.adapters.mcp.jsonrpc import RpcError, RpcResult
from proctor.adapters.mcp.session import Reply
from proctor.api.server import Server
from proctor.core.gatewaypolicy.probetools import ProbeTool, choose_probe_tools
from proctor.core.gatewaypolicy.toolerrors import Fault
from proctor.core.ids import CellKey, Control
from proctor.gateway.probing import ProbeAnswer, judge_probe
from proctor.gateway.reference_sql import plays_on_reference

NEEDS = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
READS, WRITES, DESTROYS = {"readOnlyHint": True}, {"readOnlyHint": False}, {"destructiveHint": True}


def tool(name: str, schema: Any = None, annotations: Any = None) -> dict[str, Any]:
    described = {"name": name, "inputSchema": {"type": "object"} if schema is None else schema}
    return described if annotations is None else {**described, "annotations": annotations}


@pytest.mark.parametrize(
    ("tools", "chosen"),
    [
        ([tool("a", NEEDS), tool("b")], [("b", True)]),
        ([tool("a"), tool("b", annotations=READS)], [("b", True), ("a", True)]),
        ([tool(name) for name in "abcd"], [("a", True), ("b", True), ("c", True)]),
        ([tool("a", NEEDS), tool("b", NEEDS, READS)], [("b", False)]),
        ([tool("a", annotations=DESTROYS), tool("b", annotations=WRITES)], []),
        ([tool("a", annotations=DESTROYS), tool("b", NEEDS)], [("b", False)]),
        ([tool("a", annotations={"readOnlyHint": False, "destructiveHint": False})], [("a", True)]),
        ([tool("a", {"type": "object", "required": []}), tool("b", {"required": None})], [("a", True), ("b", True)]),
        ([tool("a", {"anyOf": [NEEDS]}), tool("b", {"minProperties": 1})], [("a", False)]),
        ([tool("a", "no schema"), tool("b", {"required": "q"})], [("a", False)]),
        ([tool("a", annotations="no object")], [("a", True)]),
    ],
    ids=str,
)
def test_the_call_that_can_do_the_least(tools: list[dict[str, Any]], chosen: list[tuple[str, bool]]) -> None:
    """M-A4: read-only tools first, none that may destroy; without one that needs no arguments, one that refuses."""
    assert [(each.name, each.suffices) for each in choose_probe_tools(tools)] == chosen


RESULT = RpcResult(1, {"content": [{"type": "text", "text": "rows"}]})
ERROR = RpcResult(1, {"content": [{"type": "text", "text": "no such\nuser"}], "isError": True})
IN_BAND = RpcResult(1, {"content": [{"type": "text", "text": '{"error": "no such user"}'}]})
SILENCE = Failed(Fault.TIMEOUT, "the server did not answer tools/call within 60 s")


@pytest.mark.parametrize(
    ("suffices", "reply", "answer", "words"),
    [
        (True, RESULT, "result", ""),
        (False, RESULT, "result", ""),
        (True, ERROR, "error", "'t', called without arguments, answers with an error: no such\nuser"),
        (False, ERROR, "error", ""),
        (True, IN_BAND, "error", '{"error": "no such user"}'),
        (False, IN_BAND, "error", ""),
        (True, RpcError(1, -32602, "give q"), "error", ""),
        (True, RpcError(1, -32603, "it broke"), "error", "error -32603: it broke"),
        (False, RpcError(1, -32603, "it broke"), "error", ""),
        (True, RpcError(1, -32601, "no calls"), "error", "error -32601: no calls"),
        (False, RpcError(1, -32601, "no calls"), "error", "error -32601: no calls"),
        (True, SILENCE, "none", "'t' gives no answer: the server did not answer"),
        (False, SILENCE, "none", "'t' gives no answer: the server did not answer"),
        (True, RpcResult(1, {"isError": True}), "error", "it says nothing"),
    ],
)
def test_what_an_answer_says(suffices: bool, reply: Reply, answer: str, words: str) -> None:
    """P27: silence is a failure whatever the tool; an error only where the schema promised that the call was right."""
    call = judge_probe(ProbeTool("t", suffices), reply, error_field="error")
    assert (call.tool, call.answer) == ("t", ProbeAnswer(answer))
    assert words in call.problem
    assert bool(words) == bool(call.problem)


@pytest.mark.parametrize("control", Control)
def test_only_controls_of_a_server_without_sql_play_on_the_reference(control: Control) -> None:
    """Manifest, controls: an arm's cell never does, even a scripted oracle's: nobody would have touched its server."""
    spec = {"name": "s", "stdio": {"command": ["s"]}, "allowedTools": ["q"]}
    without = Server.model_validate(spec)
    with_sql = Server.model_validate({**spec, "sqlTool": {"name": "q", "argument": "sql"}})
    cell = CellKey.for_control("scenario", "s", control)
    assert plays_on_reference(cell, without)
    assert not plays_on_reference(cell, with_sql)
    assert not plays_on_reference(CellKey("scenario", "s", "oracle", 1), without)
