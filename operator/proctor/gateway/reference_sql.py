"""The reference SQL server: what control cells play through where the server under test takes no SQL (P27).

It is a channel like those to servers under test, so that session, policy, budget, limits and record are the same. It
stands in this process and asks the dataset's engine as the same restricted user as the servers under test.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from proctor.adapters.mcp.channel import Failed, Listener
from proctor.adapters.mcp.jsonrpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    JsonObject,
    MessageId,
    RpcError,
    RpcResult,
)
from proctor.adapters.mcp.launch import DatasetAccess
from proctor.adapters.mcp.limits import McpLimits
from proctor.api.server import Server
from proctor.core.agents.scripted import REFERENCE_SQL
from proctor.core.gatewaypolicy.toolerrors import Fault
from proctor.core.ids import CellKey

_CONNECT_SECONDS = 5.0
_MAX_ERROR_CHARS = 2000

_TOOL: JsonObject = {
    "name": REFERENCE_SQL.name,
    "description": "Run one SELECT on the dataset's ClickHouse; the rows come as JSON, one object a line.",
    "inputSchema": {
        "type": "object",
        "properties": {REFERENCE_SQL.argument: {"type": "string"}},
        "required": [REFERENCE_SQL.argument],
    },
    "annotations": {"readOnlyHint": True},
}

_SETTINGS: dict[str, str] = {
    "default_format": "JSONEachRow",
    # What the servers under test send too; a query whose caller has gone is stopped only in this mode.
    "readonly": "1",
    "cancel_http_readonly_queries_on_client_close": "1",
    # An error in the middle must not look like a short answer.
    "wait_end_of_query": "1",
}


def plays_on_reference(cell: CellKey, server: Server) -> bool:
    """Tell whether a cell is played through the reference server instead of the one under test.

    Never a cell of an arm: it would be a score of a server that nobody touched.
    """
    return cell.control is not None and server.sql_tool is None


class ReferenceSql:
    """The server as a channel: one session, one tool.

    Args:
        dataset: where the engine is, and as whom.
        limits: how long a call may take and how large an answer may be.
    """

    tells_apart = True

    _listener: Listener

    def __init__(self, dataset: DatasetAccess, limits: McpLimits) -> None:
        self._url = httpx.URL(scheme="https" if dataset.secure else "http", host=dataset.host, port=dataset.port)
        self._database = dataset.database
        self._limits = limits
        self._calls: dict[MessageId, asyncio.Task[None]] = {}
        self._client = httpx.AsyncClient(
            auth=httpx.BasicAuth(dataset.user, dataset.password),
            verify=httpx.create_ssl_context(trust_env=False) if dataset.secure else False,
            timeout=httpx.Timeout(limits.call_seconds, connect=_CONNECT_SECONDS),
            headers={"accept-encoding": "identity"},
            trust_env=False,
        )

    def start(self, listener: Listener) -> None:
        """Begin to answer."""
        self._listener = listener

    async def send(self, message: JsonObject) -> None:
        """Take one message; a call is answered when its rows are there."""
        id_, params = message.get("id"), message.get("params", {})
        if message.get("method") == "notifications/cancelled":
            call = self._calls.get(params.get("requestId"))
            if call is not None:
                call.cancel()
        if id_ is None:
            return
        match message.get("method"):
            case "initialize":
                self._listener.on_message(RpcResult(id_, _greet(params)))
            case "tools/list":
                self._listener.on_message(RpcResult(id_, {"tools": [_TOOL]}))
            case "tools/call":
                self._calls[id_] = call = asyncio.create_task(self._call(id_, params))
                call.add_done_callback(lambda _: self._calls.pop(id_, None))
            case "ping":
                self._listener.on_message(RpcResult(id_, {}))
            case method:
                self._listener.on_message(RpcError(id_, METHOD_NOT_FOUND, f"no method {method}"))

    async def close(self) -> None:
        """Stop the open queries."""
        calls = list(self._calls.values())
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await self._client.aclose()

    def log_tail(self) -> str:
        """Return nothing: what it has to say is in its answers."""
        return ""

    async def _call(self, id_: MessageId, params: JsonObject) -> None:
        arguments = params.get("arguments")
        query = arguments.get(REFERENCE_SQL.argument) if isinstance(arguments, dict) else None
        if not isinstance(query, str) or not query.strip():
            text = f"{REFERENCE_SQL.argument!r} has to be one SQL query"
            self._listener.on_message(RpcError(id_, INVALID_PARAMS, text))
            return
        reply = await self._run(query)
        if isinstance(reply, Failed):
            self._listener.on_request_failed(id_, reply)
        else:
            self._listener.on_message(RpcResult(id_, reply))

    async def _run(self, query: str) -> JsonObject | Failed:
        settings = {"database": self._database, **_SETTINGS}
        # A lone surrogate, which JSON can carry, is no text in any SQL.
        statement = query.encode("utf-8", "replace")
        body = bytearray()
        try:
            async with self._client.stream("POST", self._url, params=settings, content=statement) as response:
                async for piece in response.aiter_raw():
                    body += piece
                    if len(body) > self._limits.message_bytes:
                        limit = self._limits.message_bytes
                        text = f"the answer is larger than {limit} bytes and was cut: ask for less"
                        return Failed(Fault.RESULT_TOO_LARGE, text)
        except httpx.HTTPError as error:
            # Its text may name the machine's own addresses; the kind says enough.
            return Failed(Fault.UNREACHABLE, f"the dataset's engine gives no answer ({type(error).__name__})")
        text = body.decode("utf-8", "replace")
        if response.status_code == httpx.codes.OK and "x-clickhouse-exception-code" not in response.headers:
            return _text(text)
        return {**_text(text.strip()[:_MAX_ERROR_CHARS]), "isError": True}


def _greet(params: JsonObject) -> JsonObject:
    return {
        "protocolVersion": params.get("protocolVersion"),
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "proctor-reference-sql", "version": "1"},
    }


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": False}
