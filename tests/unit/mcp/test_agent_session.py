"""What waits to be sent to an agent: in order, bounded, and never an answer lost."""

from __future__ import annotations

import json

from proctor.adapters.mcp.jsonrpc import Notification
from proctor.gateway.agent_session import MAX_SESSIONS, AgentSessions, Outbox


def make_notification(number: int) -> Notification:
    return Notification("notifications/message", {"data": number})


async def drain(outbox: Outbox) -> list[object]:
    events = [event async for event in outbox.events()]
    return [json.loads(event.split(b"data: ")[1]) for event in events]


async def test_a_stream_ends_with_the_answer() -> None:
    """Notifications come in order, then the answer."""
    outbox = Outbox()
    assert outbox.untouched
    outbox.notify(make_notification(1))
    outbox.notify(make_notification(2))
    assert not outbox.untouched
    outbox.finish(b'{"id":1}')
    outbox.notify(make_notification(3))
    first, second, answer = await drain(outbox)
    assert (first["params"], second["params"]) == ({"data": 1}, {"data": 2})  # type: ignore[index]
    assert answer == {"id": 1}


async def test_a_slow_reader_loses_notifications_and_never_the_answer() -> None:
    """Memory is bounded whatever the server says and however slowly the agent reads."""
    outbox = Outbox()
    for number in range(5000):
        outbox.notify(make_notification(number))
    outbox.finish(b'{"id":1}')
    drained = await drain(outbox)
    assert len(drained) == 1001
    assert drained[-1] == {"id": 1}


async def test_what_comes_before_a_session_or_a_stream_is_kept_for_it() -> None:
    """A notification during the handshake isn't lost."""
    sessions = AgentSessions()
    sessions.notify(make_notification(1))
    session = sessions.open("2025-11-25")
    sessions.notify(make_notification(2))
    stream = session.open_stream()
    sessions.notify(make_notification(3))
    sessions.close_all()
    assert [message["params"]["data"] for message in await drain(stream)] == [1, 2, 3]  # type: ignore[index]


def test_sessions_are_bounded() -> None:
    """An agent that reconnects for ever keeps its newest sessions."""
    sessions = AgentSessions()
    opened = [sessions.open("2025-11-25") for _ in range(MAX_SESSIONS + 2)]
    assert sessions.find(opened[0].id) is None
    assert sessions.find(opened[-1].id) is opened[-1]
