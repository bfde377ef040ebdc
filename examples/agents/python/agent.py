"""An agent of one's own: the model through the `anthropic` SDK, the tools through the `mcp` SDK.

Proctor gives it PROCTOR_GATEWAY and PROCTOR_TOKEN, and the ANTHROPIC_… variables that the SDK looks for by itself.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import httpx2
from anthropic import AsyncAnthropic, RateLimitError
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult

GATEWAY, TOKEN = os.environ["PROCTOR_GATEWAY"], os.environ["PROCTOR_TOKEN"]


async def main() -> None:
    """Read the brief, investigate, and send the answer."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(base_url=GATEWAY, headers=headers, timeout=None) as http:
        brief = (await http.get("/brief")).raise_for_status().json()
        async with Client(streamable_http_client(f"{GATEWAY}/mcp", http_client=http)) as tools:
            answer = await investigate(brief, tools)
        if answer:
            (await http.put("/answer", content=answer.encode())).raise_for_status()


async def investigate(brief: dict[str, Any], tools: Client) -> str:
    """Let the model call tools until it ends its turn; return the last that it said."""
    model, said = AsyncAnthropic(timeout=None), ""
    offered = [
        {"name": tool.name, "description": tool.description or "", "input_schema": tool.input_schema}
        for tool in (await tools.list_tools()).tools
    ]
    messages: list[dict[str, Any]] = [{"role": "user", "content": brief["prompt"]}]
    while True:
        try:
            async with model.messages.stream(
                model=brief["model"], system=brief["system"], messages=messages, tools=offered, max_tokens=8192
            ) as stream:
                reply = await stream.get_final_message()
        except RateLimitError:  # a budget is used up: what there is counts
            return said
        said = "\n".join(block.text for block in reply.content if block.type == "text") or said
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return said
        results = [tell(call.id, await tools.call_tool(call.name, call.input)) for call in calls]
        messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": results}]


def tell(call: str, result: CallToolResult) -> dict[str, Any]:
    """Say in the words of the Messages API what a tool returned."""
    blocks = [
        {"type": "text", "text": block.text if block.type == "text" else block.model_dump_json()}
        for block in result.content
    ]
    return {"type": "tool_result", "tool_use_id": call, "content": blocks, "is_error": bool(result.is_error)}


asyncio.run(main())
