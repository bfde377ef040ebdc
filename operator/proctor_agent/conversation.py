"""The loop: ask the model, call the tools it names, until it ends its turn."""

from __future__ import annotations

import json

from proctor_agent.ending import send_answer
from proctor_agent.failures import Malformed, Refused
from proctor_agent.parsing import Json, count_turns, parse_object, text_field
from proctor_agent.sse import read_message
from proctor_agent.wire import Gateway, quote_segment

MAX_REPLY_TOKENS = 8192
"""Room for one reply: more than any answer needs, and what every current model takes."""

_CUT_REPLIES = 3
"""So often in a row a reply may be cut at its token limit before the last text counts as the answer."""

_GO_ON = "Your reply was cut off at its length limit. Go on, and be brief."


class Conversation:
    """One investigation.

    Args:
        gateway: the only thing that can be reached.
        stream: whether replies are streamed.
    """

    def __init__(self, gateway: Gateway, *, stream: bool) -> None:
        self._gateway = gateway
        self._stream = stream
        self._last_text = ""
        self._cut_in_a_row = 0

    def run(self) -> str:
        """Investigate, and send the answer.

        Returns:
            Why it ended.

        Raises:
            AgentFailure: it can't go on.
        """
        brief = parse_object(self._gateway.fetch("GET", "/brief"), "the brief")
        try:
            ended = self._converse(brief)
        except Refused as refused:
            if not refused.is_limit:
                raise
            ended = f"stopped: {refused.message}"
        return send_answer(self._gateway, self._last_text, ended)

    def _converse(self, brief: Json) -> str:
        request = self._opening(brief)
        messages: list[Json] = [{"role": "user", "content": text_field(brief, "prompt")}]
        for _ in range(count_turns(brief)):
            reply = self._ask({**request, "messages": messages})
            following = self._follow(reply)
            if not following:
                return f"the model stopped: {reply.get('stop_reason')}"
            messages += following
        return "all turns are used"

    def _opening(self, brief: Json) -> Json:
        tools = parse_object(self._gateway.fetch("GET", "/tools"), "the tool list").get("tools")
        if not isinstance(tools, list):
            raise Malformed("the tool list has no tools")
        limit = brief.get("maxTokens")
        request: Json = {
            "model": text_field(brief, "model"),
            "max_tokens": min(limit, MAX_REPLY_TOKENS) if isinstance(limit, int) else MAX_REPLY_TOKENS,
            "system": text_field(brief, "system"),
            "stream": self._stream,
        }
        if tools:
            request["tools"] = [_describe_tool(tool) for tool in tools]
        return request

    def _ask(self, request: Json) -> Json:
        body = json.dumps(request).encode()
        pieces = self._gateway.request("POST", "/v1/messages", body)
        return read_message(pieces) if self._stream else parse_object(b"".join(pieces), "the model's reply")

    def _follow(self, reply: Json) -> list[Json]:
        """Return the messages that follow from a reply; none when the turn has ended."""
        content = reply.get("content")
        if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
            raise Malformed("the model's reply has no content list")
        text = "\n".join(str(block.get("text", "")) for block in content if block.get("type") == "text")
        if text.strip():
            self._last_text = text
        # The API takes no empty text back.
        kept = [block for block in content if block.get("type") != "text" or str(block.get("text", "")).strip()]
        if reply.get("stop_reason") == "max_tokens":
            return self._after_a_cut(kept)
        self._cut_in_a_row = 0
        calls = [block for block in kept if block.get("type") == "tool_use"]
        if calls:
            results = [self._call(call) for call in calls]
            return [{"role": "assistant", "content": _sendable(kept)}, {"role": "user", "content": results}]
        if reply.get("stop_reason") == "pause_turn" and kept:
            return [{"role": "assistant", "content": kept}]
        return []

    def _after_a_cut(self, kept: list[Json]) -> list[Json]:
        self._cut_in_a_row += 1
        if self._cut_in_a_row > _CUT_REPLIES:
            return []
        # The last tool call of a cut reply may lack half of its arguments, so none is made.
        said = [block for block in kept if block.get("type") == "text"]
        if not said:
            said = [{"type": "text", "text": "(cut off)"}]
        return [{"role": "assistant", "content": said}, {"role": "user", "content": _GO_ON}]

    def _call(self, call: Json) -> Json:
        name, arguments = str(call.get("name", "")), call.get("input")
        if not isinstance(arguments, dict):
            return _build_result(call, "The arguments are not one JSON object.", failed=True)
        try:
            body = self._gateway.fetch("POST", f"/tools/{quote_segment(name)}", json.dumps(arguments).encode())
        except Refused as refused:
            if not refused.is_about_the_call:
                raise
            return _build_result(call, refused.message, failed=True)
        result = parse_object(body, f"the result of {name}")
        content = result.get("content")
        blocks = [_convert_block(block) for block in content] if isinstance(content, list) else []
        kept = [block for block in blocks if block.get("text") != ""]
        return _build_result(call, kept or "", failed=bool(result.get("isError")))


def _describe_tool(tool: Json) -> Json:
    """Say in the words of the Messages API what MCP says of a tool."""
    described: Json = {"name": tool["name"], "input_schema": tool.get("inputSchema") or {"type": "object"}}
    if tool.get("description"):
        described["description"] = tool["description"]
    return described


def _convert_block(block: object) -> Json:
    """Say in the words of the Messages API what MCP says of a piece of a result."""
    match block:
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "image", "data": str(data), "mimeType": str(kind)}:
            return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
        case _:
            return {"type": "text", "text": json.dumps(block)}


def _build_result(call: Json, content: object, *, failed: bool) -> Json:
    result: Json = {"type": "tool_result", "tool_use_id": call.get("id"), "content": content}
    if failed:
        result["is_error"] = True
    return result


def _sendable(blocks: list[Json]) -> list[Json]:
    """Return blocks as the API takes them back: a tool call's input must be an object."""
    return [
        {**block, "input": {}}
        if block.get("type") == "tool_use" and not isinstance(block.get("input"), dict)
        else block
        for block in blocks
    ]
