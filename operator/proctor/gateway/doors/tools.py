"""GET /tools and POST /tools/{name}: the server's tools as plain JSON, for agents in any language."""

from __future__ import annotations

from typing import cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from proctor.adapters.mcp.jsonrpc import InvalidMessage, JsonObject, parse_json
from proctor.core.gatewaypolicy.refusal import RefusalCode, Refused
from proctor.gateway.requests import attempt_of, read_agent_body
from proctor.gateway.toolbox import Toolbox

MAX_ARGUMENT_BYTES = 4 * 1024 * 1024
"""What the SDK's HTTP servers take in one request."""


def toolbox_of(request: Request) -> Toolbox:
    """Return the tools of the attempt that the guard let through.

    Raises:
        Refused: this gateway has no servers.
    """
    toolbox = attempt_of(request).toolbox
    if toolbox is None:
        raise Refused(RefusalCode.TOOL, "this attempt has no tools", status=404)
    return cast("Toolbox", toolbox)


async def list_tools(request: Request) -> Response:
    """Return the tools in the server's own words."""
    listing = await toolbox_of(request).list_tools()
    return JSONResponse({"tools": list(listing.tools)})


async def call_tool(request: Request) -> Response:
    """Call a tool; the body is its arguments."""
    arguments = _parse_arguments(await read_agent_body(request, MAX_ARGUMENT_BYTES))
    reply = await toolbox_of(request).call(request.path_params["name"], arguments)
    return Response(reply.plain, media_type="application/json")


def _parse_arguments(body: bytes) -> JsonObject:
    if not body.strip():
        return {}
    try:
        arguments = parse_json(body)
    except InvalidMessage as e:
        raise Refused(RefusalCode.MALFORMED, f"the arguments are {e}", status=400) from e
    if not isinstance(arguments, dict):
        raise Refused(RefusalCode.MALFORMED, "the arguments are not a JSON object", status=400)
    return arguments


routes: list[BaseRoute] = [
    Route("/tools", list_tools, methods=["GET"]),
    Route("/tools/{name:path}", call_tool, methods=["POST"]),
]
"""The door."""
