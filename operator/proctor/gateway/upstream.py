"""The live connection of one attempt to its server under test: opened once, replaced when it broke."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from proctor.adapters.mcp.channel import Channel, Failed
from proctor.adapters.mcp.jsonrpc import JsonObject, RpcError, RpcResult
from proctor.adapters.mcp.limits import McpLimits
from proctor.adapters.mcp.session import NotificationSink, Reply, UpstreamSession
from proctor.core.gatewaypolicy.toolerrors import Fault
from proctor.core.gatewaypolicy.toollist import ToolListing, build_listing
from proctor.core.gatewaypolicy.tools import ToolPolicy
from proctor.errors import ProctorError, Retryable

PROTOCOL_VERSION = "2025-11-25"
"""The newest revision with an `initialize` handshake; a server answers with the one it speaks."""

_OWN_PARAMS: JsonObject = {
    "protocolVersion": PROTOCOL_VERSION,
    "capabilities": {},
    "clientInfo": {"name": "proctor", "version": "1"},
}
_UNOFFERED_CAPABILITIES = frozenset({"sampling", "elicitation", "roots", "tasks"})
_MAX_PAGES = 100


@dataclass(frozen=True, slots=True)
class UpstreamHooks:
    """What the owner of a connection wants to hear.

    Attributes:
        check_tools: takes the tools of each fresh session; returns why they can't be used, or nothing.
        on_notification: takes notifications that belong to no request.
        on_declined: takes the method of each request by the server that was declined.
    """

    check_tools: Callable[[ToolListing], str] = lambda listing: listing.error
    on_notification: NotificationSink = lambda _notification: None
    on_declined: Callable[[str], None] = lambda _method: None


class Upstream:
    """A connection that is there when it is needed.

    Args:
        connect: opens a channel; a fresh server process where the transport is a command.
        policy: which tools agents may use.
        limits: bounds of each session.
        needed: tools that the suite needs for itself.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Channel]],
        policy: ToolPolicy,
        limits: McpLimits,
        *,
        needed: tuple[str, ...] = (),
    ) -> None:
        self.hooks = UpstreamHooks()
        self._connect = connect
        self._policy = policy
        self._limits = limits
        self._needed = needed
        self._opening: asyncio.Task[Reply] | None = None
        self._starting: asyncio.Future[Channel] | None = None
        self._session: UpstreamSession | None = None
        self._params = _OWN_PARAMS
        self._greeting: RpcResult | None = None
        self._log_of: Callable[[], str] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._retired: list[UpstreamSession] = []
        self._closed = False

    def prestart(self) -> None:
        """Begin to start the server."""
        if self._starting is None and self._session is None and not self._closed:
            self._starting = asyncio.ensure_future(self._connect())

    async def ready(self) -> Failed | None:
        """Make sure that a session is open and its tools are those expected; None if so."""
        if self._session is not None and self._session.usable and not self._is_opening:
            return None
        reply = await self._open_once()
        if isinstance(reply, RpcError):
            return Failed(Fault.START_FAILED, f"the server answers initialize with error {reply.code}")
        return reply if isinstance(reply, Failed) else None

    async def initialize(self, params: JsonObject) -> Reply:
        """Shake hands as an agent asks for it; a session that already speaks its version is kept."""
        if self._is_opening:
            await self._open_once()
        if self._greeting is not None and self._speaks(params.get("protocolVersion")):
            return self._greeting
        capabilities = params.get("capabilities")
        offered = capabilities if isinstance(capabilities, dict) else {}
        kept = {name: value for name, value in offered.items() if name not in _UNOFFERED_CAPABILITIES}
        self._params = {**params, "capabilities": kept}
        return await self._open_once()

    async def request(self, method: str, params: JsonObject, *, sink: NotificationSink | None = None) -> Reply:
        """Send a request on the session that `ready` found."""
        session = self._session
        if session is None:
            return Failed(Fault.EXITED, "there is no session with the server")
        reply = await session.request(method, params, sink=sink)
        if not session.usable:
            self._retire(session)
        return reply

    def watch(self, on_tools: Callable[[ToolListing], None]) -> None:
        """Hear of the tools of each fresh session, and accept any list without an error."""

        def check(listing: ToolListing) -> str:
            on_tools(listing)
            return listing.error

        self.hooks = UpstreamHooks(check_tools=check)

    def log_tail(self) -> str:
        """Return the end of the newest server's own log, for people."""
        return self._log_of() if self._log_of is not None else ""

    async def close(self) -> None:
        """End the session, and the server's process where it is ours."""
        self._closed = True
        if self._opening is not None and not self._opening.done():
            self._opening.cancel()
            await asyncio.wait([self._opening])
        if self._starting is not None:
            channel = await _settle(self._starting)
            self._starting = None
            if channel is not None:
                await channel.close()
        if self._session is not None:
            await self._session.close()
            self._session = None
        await asyncio.gather(*(session.close() for session in self._retired), *self._closing)

    @property
    def _is_opening(self) -> bool:
        return self._opening is not None and not self._opening.done()

    async def _open_once(self) -> Reply:
        """Open a session, or wait for the one that is being opened; an agent that goes away doesn't stop it halfway."""
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._open())
        return await asyncio.shield(self._opening)

    def _speaks(self, version: object) -> bool:
        """Whether a live session was opened with a protocol version, or agreed on it."""
        if self._session is None or not self._session.usable or self._greeting is None:
            return False
        return version in (self._greeting.result.get("protocolVersion"), self._params.get("protocolVersion"))

    async def _open(self) -> Reply:
        """Replace the session by a fresh one."""
        if self._closed:
            return Failed(Fault.EXITED, "the attempt is over")
        old, self._session = self._session, None
        if old is not None:
            self._retire(old)
        self.prestart()
        assert self._starting is not None  # noqa: S101 - prestart saw to it
        try:
            channel = await asyncio.shield(self._starting)
        except Retryable as e:
            self._starting = None
            return Failed(Fault.NOT_LAUNCHED, str(e))
        except ProctorError as e:
            self._starting = None
            return Failed(Fault.START_FAILED, str(e))
        self._starting = None
        session = UpstreamSession(
            channel,
            self._limits,
            on_notification=self.hooks.on_notification,
            on_declined=self.hooks.on_declined,
        )
        self._session = session
        self._log_of = session.log_tail
        return await self._greet(session)

    async def _greet(self, session: UpstreamSession) -> Reply:
        reply = await session.request("initialize", self._params, seconds=self._limits.start_seconds)
        if isinstance(reply, RpcError):
            await session.close()
            return reply
        if isinstance(reply, Failed):
            await session.close()
            return Failed(reply.fault, f"the server did not start: {reply.detail}", reply.http_status)
        await session.notify("notifications/initialized", {})
        listing = await fetch_listing(session, self._policy, self._limits, needed=self._needed)
        if isinstance(listing, Failed):
            await session.close()
            return listing
        problem = self.hooks.check_tools(listing)
        if problem:
            await session.close()
            return Failed(Fault.TOOLS_CHANGED, problem)
        self._greeting = reply
        return reply

    def _retire(self, session: UpstreamSession) -> None:
        """Close a session in the background; calls beside the one that failed may still be answered."""
        if session is self._session:
            self._session = None
        if session in self._retired:
            return
        self._retired.append(session)
        task = asyncio.create_task(session.close_when_idle())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def fetch_listing(
    session: UpstreamSession, policy: ToolPolicy, limits: McpLimits, *, needed: tuple[str, ...] = ()
) -> ToolListing | Failed:
    """Read all pages of a server's list of tools."""
    tools: list[Any] = []
    params: JsonObject = {}
    for _ in range(_MAX_PAGES):
        reply = await session.request("tools/list", params, seconds=limits.start_seconds)
        if isinstance(reply, Failed):
            return Failed(reply.fault, f"the server did not list its tools: {reply.detail}", reply.http_status)
        if isinstance(reply, RpcError):
            return ToolListing(error=f"answers tools/list with error {reply.code}")
        page = reply.result.get("tools")
        if not isinstance(page, list):
            return ToolListing(error="answers tools/list without a list of tools")
        tools += page
        cursor = reply.result.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            return build_listing(tools, policy, needed=needed)
        params = {"cursor": cursor}
    return ToolListing(error=f"lists its tools on more than {_MAX_PAGES} pages")


async def _settle(starting: asyncio.Future[Channel]) -> Channel | None:
    try:
        return await starting
    except ProctorError:
        return None
