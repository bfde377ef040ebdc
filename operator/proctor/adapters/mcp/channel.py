"""What a connection to a server under test is, whichever the transport."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from proctor.adapters.mcp.jsonrpc import JsonObject, Message, MessageId
from proctor.core.gatewaypolicy.toolerrors import Fault


@dataclass(frozen=True, slots=True)
class Failed:
    """No answer: the server or the way to it failed.

    Attributes:
        fault: how.
        detail: one line that may be shown to the agent; holds nothing that the server's own log said.
        http_status: of the answer, where the fault is `HTTP_STATUS`.
    """

    fault: Fault
    detail: str
    http_status: int | None = None


class Listener(Protocol):
    """Takes what a server sends; called from the reading task, so it must not wait."""

    def on_message(self, message: Message, *, related: MessageId | None = None) -> None:
        """Take one message; `related` is the request on whose own stream it came, where there is such a thing."""
        ...

    def on_request_failed(self, id_: MessageId | None, failure: Failed) -> None:
        """Take the failure of one request; None means that it can't be told which."""
        ...

    def on_closed(self, failure: Failed) -> None:
        """Take the end of the connection."""
        ...


class Channel(Protocol):
    """A connection that carries JSON-RPC messages."""

    @property
    def tells_apart(self) -> bool:
        """Whether each request has a stream of its own, so that `related` says what a notification belongs to."""
        ...

    def start(self, listener: Listener) -> None:
        """Begin to read."""
        ...

    async def send(self, message: JsonObject) -> None:
        """Send one message.

        A failure is told to the listener; it isn't raised.
        """
        ...

    async def close(self) -> None:
        """End the connection, and the server's process with everything that it started, if this channel started it."""
        ...

    def log_tail(self) -> str:
        """Return the end of the server's own log, for people; empty where it isn't ours to see."""
        ...
