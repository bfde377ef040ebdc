"""The agent's side of MCP: its sessions, and what waits to be sent to it."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from proctor.adapters.mcp.jsonrpc import MessageId, Notification, build_notification, encode

MAX_SESSIONS = 8
"""Sessions of one attempt; clients that reconnect leave dead ones behind, and the oldest make room."""

_MAX_WAITING = 1000
"""Notifications that wait for a slow or absent reader; further ones are dropped, answers never."""
_MAX_BACKLOG = 100
"""Notifications kept until a stream is opened for them; the oldest make room."""
_KEEP_ALIVE_SECONDS = 15.0
"""Silence after which proxies and clients begin to suspect a dead connection."""


class Outbox:
    """Messages on their way to the agent on one stream."""

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._more = asyncio.Event()
        self._finished = False
        self.answer: bytes | None = None

    @property
    def untouched(self) -> bool:
        """Whether nothing but the answer was ever put in."""
        return not self._waiting

    def notify(self, notification: Notification) -> None:
        """Put a notification in, unless too many wait already."""
        if len(self._waiting) < _MAX_WAITING and not self._finished:
            self._waiting.append(encode(build_notification(notification.method, notification.params)))
            self._more.set()

    def finish(self, answer: bytes | None = None) -> None:
        """Say that nothing follows but this answer."""
        self.answer = answer
        self._finished = True
        self._more.set()

    async def wait(self) -> None:
        """Wait until there is something."""
        await self._more.wait()

    async def events(self) -> AsyncIterator[bytes]:
        """Yield everything as server-sent events until the end."""
        while True:
            while self._waiting:
                yield _render_event(self._waiting.popleft())
            if self._finished:
                if self.answer is not None:
                    yield _render_event(self.answer)
                return
            self._more.clear()
            try:
                async with asyncio.timeout(_KEEP_ALIVE_SECONDS):
                    await self._more.wait()
            except TimeoutError:
                yield b": waiting\n\n"


def _render_event(message: bytes) -> bytes:
    """JSON on one line has no line break, so the event is one `data` line."""
    return b"event: message\ndata: " + message + b"\n\n"


@dataclass(slots=True)
class AgentSession:
    """One MCP session of the agent.

    Attributes:
        id: its `Mcp-Session-Id`.
        version: the protocol version that was agreed.
        calls: the requests that are open, by the agent's own ids.
        stream: what goes to its GET stream; None while it has none.
        backlog: what came while there was no stream.
    """

    version: str
    id: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    calls: dict[MessageId, asyncio.Task[None]] = field(default_factory=dict)
    stream: Outbox | None = None
    backlog: deque[Notification] = field(default_factory=lambda: deque(maxlen=_MAX_BACKLOG))

    def notify(self, notification: Notification) -> None:
        """Send a notification that belongs to no request."""
        if self.stream is None:
            self.backlog.append(notification)
        else:
            self.stream.notify(notification)

    def open_stream(self) -> Outbox:
        """Open the GET stream, with what came before it."""
        self.stream = Outbox()
        while self.backlog:
            self.stream.notify(self.backlog.popleft())
        return self.stream

    def cancel(self, id_: MessageId) -> None:
        """Cancel an open request of the agent."""
        call = self.calls.get(id_)
        if call is not None:
            call.cancel()

    def close(self) -> None:
        """End its stream; open requests run to their end, so that their record is whole."""
        if self.stream is not None:
            self.stream.finish()


class AgentSessions:
    """The MCP sessions of one attempt."""

    def __init__(self) -> None:
        self._sessions: dict[str, AgentSession] = {}
        self._early: deque[Notification] = deque(maxlen=_MAX_BACKLOG)

    def open(self, version: str) -> AgentSession:
        """Open a session."""
        if len(self._sessions) >= MAX_SESSIONS:
            self.close(next(iter(self._sessions)))
        session = AgentSession(version)
        while self._early:
            session.notify(self._early.popleft())
        self._sessions[session.id] = session
        return session

    def find(self, id_: str) -> AgentSession | None:
        """Return an open session."""
        return self._sessions.get(id_)

    def close(self, id_: str) -> None:
        """End a session."""
        self._sessions.pop(id_).close()

    def close_all(self) -> None:
        """End all sessions."""
        for id_ in list(self._sessions):
            self.close(id_)

    def notify(self, notification: Notification) -> None:
        """Send a notification that belongs to no request to every session, or keep it for the first one."""
        if not self._sessions:
            self._early.append(notification)
        for session in self._sessions.values():
            session.notify(notification)
