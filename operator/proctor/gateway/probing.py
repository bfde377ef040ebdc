"""The call by which Preflight sees that a server answers, where no control cell plays through it (M-A4, P27)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, assert_never

from proctor.adapters.mcp.channel import Failed
from proctor.adapters.mcp.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError, RpcResult
from proctor.adapters.mcp.session import Reply
from proctor.core.gatewaypolicy.probetools import ProbeTool, choose_probe_tools
from proctor.core.gatewaypolicy.toolerrors import OK, blame_result
from proctor.core.gatewaypolicy.toollist import Tool
from proctor.gateway.upstream import Upstream


class ProbeAnswer(StrEnum):
    """How a server answered the call."""

    RESULT = "result"
    ERROR = "error"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ProbeCall:
    """One call of one tool, without arguments.

    Attributes:
        tool: which.
        answer: how it was answered.
        problem: why the server can't be used, raw and of any length; empty if it can.
    """

    tool: str
    answer: ProbeAnswer
    problem: str = ""

    def render(self) -> dict[str, Any]:
        """Return it as the control door shows it."""
        return {"tool": self.tool, "answer": self.answer.value}


async def call_probe(upstream: Upstream, tools: Sequence[Tool], *, error_field: str | None = None) -> ProbeCall | None:
    """Call tools until one answers as it should.

    Args:
        upstream: an open session.
        tools: the tools that agents are served.
        error_field: the suite's `errorField` for this server.

    Returns:
        The first call that shows that the server works, or that it doesn't answer; else the first of those that it
        answered with an error. None if there is no tool that may be called.
    """
    first: ProbeCall | None = None
    for tool in choose_probe_tools(tools):
        reply = await upstream.request("tools/call", {"name": tool.name, "arguments": {}})
        call = judge_probe(tool, reply, error_field=error_field)
        if not call.problem or call.answer is ProbeAnswer.NONE:
            return call
        first = first or call
    return first


def judge_probe(tool: ProbeTool, reply: Reply, *, error_field: str | None = None) -> ProbeCall:
    """Decide what an answer says about the server.

    Silence, a broken connection, and a server that knows no calls are failures, whatever the tool. An error is one
    only where the tool's own schema promised that the call was right.
    """
    match reply:
        case Failed(detail=detail):
            return ProbeCall(tool.name, ProbeAnswer.NONE, f"its tool {tool.name!r} gives no answer: {detail}")
        case RpcError(code=code, message=message):
            call = ProbeCall(tool.name, ProbeAnswer.ERROR)
            expected = code == INVALID_PARAMS or (code != METHOD_NOT_FOUND and not tool.suffices)
            return call if expected else _blame(tool, f"error {code}: {message}")
        case RpcResult(result=result):
            if blame_result(result, error_field=error_field) == OK:
                return ProbeCall(tool.name, ProbeAnswer.RESULT)
            call = ProbeCall(tool.name, ProbeAnswer.ERROR)
            return call if not tool.suffices else _blame(tool, _read_words(result))
        case _:
            assert_never(reply)


def _blame(tool: ProbeTool, words: str) -> ProbeCall:
    problem = f"its tool {tool.name!r}, called without arguments, answers with an error: {words}"
    return ProbeCall(tool.name, ProbeAnswer.ERROR, problem)


def _read_words(result: dict[str, Any]) -> str:
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    texts = (block.get("text") for block in blocks if isinstance(block, dict))
    return " ".join(text for text in texts if isinstance(text, str)) or "it says nothing"
