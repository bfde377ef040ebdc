"""The gateway's own MCP client, for the official suite: `conformance_client.py URL` opens a session, calls each tool.

The session is opened as for an attempt of a cell: greeting, list, policy. Standard error says how it ended.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any
from urllib.parse import urlsplit

from proctor.adapters.mcp.channel import Channel
from proctor.adapters.mcp.connect import open_channel
from proctor.adapters.mcp.launch import HttpAddress, PlainLauncher
from proctor.adapters.mcp.limits import McpLimits
from proctor.adapters.mcp.target import HttpTarget
from proctor.core.gatewaypolicy.toollist import ToolListing
from proctor.core.gatewaypolicy.tools import ToolPolicy
from proctor.gateway.upstream import Upstream

LIMITS = McpLimits(start_seconds=20, call_seconds=20)
VALUES = {"number": 5, "integer": 5, "string": "five", "boolean": True}


def fill(schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments of the types that a tool asks for."""
    return {name: VALUES.get(wanted.get("type"), {}) for name, wanted in schema.get("properties", {}).items()}


async def main(url: str) -> None:
    parts = urlsplit(url)
    target = HttpTarget("sql", HttpAddress(f"{parts.scheme}://{parts.netloc}"), parts.path or "/", remote=True)

    async def connect() -> Channel:
        return await open_channel(target, PlainLauncher(LIMITS), LIMITS)

    upstream = Upstream(connect, ToolPolicy(), LIMITS)
    seen: list[ToolListing] = []
    upstream.watch(seen.append)
    try:
        failed = await upstream.ready()
        if failed is not None:
            sys.stderr.write(failed.detail)
            return
        for tool in seen[-1].tools:
            call = {"name": tool["name"], "arguments": fill(tool["inputSchema"])}
            sys.stderr.write(f"{tool['name']}: {await upstream.request('tools/call', call)}\n")
    finally:
        await upstream.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
