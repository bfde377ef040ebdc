"""What an upstream server says directly is what it says through the gateway, member by member."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from proctor.api.server import Server
from support.mcp import SERVERS, open_cell

COMMAND = [sys.executable, "-I", str(SERVERS / "everything.py")]
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    *(
        ("tools/call", {"name": name, "arguments": {}})
        for name in (
            "test_simple_text",
            "test_image_content",
            "test_audio_content",
            "test_embedded_resource",
            "test_multiple_content_types",
            "test_error_handling",
            "test_tool_with_logging",
        )
    ),
    ("tools/call", {"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": 5}}),
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "test://static-binary"}),
    ("resources/read", {"uri": "test://template/7/data"}),
    ("resources/subscribe", {"uri": "test://watched-resource"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "test_prompt_with_arguments", "arguments": {"arg1": "a", "arg2": "b"}}),
    ("prompts/get", {"name": "test_prompt_with_image"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "b"}}),
    ("logging/setLevel", {"level": "debug"}),
    ("ping", {}),
]


async def ask_directly() -> list[list[dict[str, Any]]]:
    """Speak lines with the server itself; what it says to each request, the answer last."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    said: list[list[dict[str, Any]]] = []
    for id_, (method, params) in enumerate(REQUESTS):
        message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}
        process.stdin.write(json.dumps(message).encode() + b"\n")
        said.append([])
        while not said[-1] or "id" not in said[-1][-1]:
            said[-1].append(json.loads(await process.stdout.readline()))
    process.stdin.close()
    await process.wait()
    return said


def without_ids(said: list[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    return [[{key: value for key, value in message.items() if key != "id"} for message in each] for each in said]


async def test_tools_resources_and_prompts_pass_as_they_came() -> None:
    """M-A4, M-A8: results, notifications, progress and their order are the server's own."""
    server = Server.model_validate({"name": "sql", "stdio": {"command": COMMAND}, "deniedTools": []})
    async with open_cell(server) as cell:
        await cell.initialize()
        through = [await cell.request(method, params) for method, params in REQUESTS]
    assert without_ids(through) == without_ids(await ask_directly())


async def test_sampling_and_elicitation_are_declined_to_the_server() -> None:
    """The server is told so, in words, and goes on."""
    server = Server.model_validate({"name": "sql", "stdio": {"command": COMMAND}, "deniedTools": []})
    async with open_cell(server) as cell:
        assert "sampling is not offered" in await cell.call_text("test_sampling")
        assert "elicitation is not offered" in await cell.call_text("test_elicitation")
