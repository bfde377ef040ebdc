"""Bounds on what a server under test may make the gateway wait for, hold or pass on."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class McpLimits:
    """Limits on one MCP session; tests make them small.

    Attributes:
        start_seconds: from launch to the answer of `initialize`. Importing mcp-clickhouse takes 2.5 CPU-seconds, and
            several start at once on few, busy cores; one that needs longer than this eats a cell's own five minutes.
        call_seconds: for one request. ClickHouse stops a query of the servers' own defaults at 30 s; a minute leaves
            room for one query more, and two hung calls still fit into a cell of five minutes.
        message_bytes: one JSON-RPC message. A result this large fills several model contexts.
        skipped_bytes: how much of an oversized message is read past to find the next one before the server is given up.
        notifications: how many in a row, without an answer between them, before it is a flood: the gateway is shared by
            other cells, and each costs it a parse.
        stray_lines: lines on standard output that are not JSON; servers print banners there, but not for ever.
        stop_seconds: between asking a process to end and killing its group.
        hook_seconds: for a program that prepares a server; as long as a server may take to start.
        hook_bytes: what that program may print; all but its last line is passed over.
    """

    start_seconds: float = 60.0
    call_seconds: float = 60.0
    message_bytes: int = 8 * MIB
    skipped_bytes: int = 256 * MIB
    notifications: int = 10_000
    stray_lines: int = 10_000
    stop_seconds: float = 5.0
    hook_seconds: float = 60.0
    hook_bytes: int = MIB
