"""A thousand tool calls: each is served, recorded and counted, and the one after them is refused."""

from __future__ import annotations

from proctor.core.trajectory.events import EventKind
from proctor.core.trajectory.outcome import ExitCause, Limit, Outcome, ProcessExit
from support.mcp import make_server, open_cell

_CALLS = 1000


async def test_a_thousand_calls_are_served_and_one_more_is_not() -> None:
    """Faults, a model that answers 1,000 tool calls; M-B1, S16: no gap in the record, and a limit that is one."""
    async with open_cell(make_server(), agent={"maxToolCalls": _CALLS}) as cell:
        for number in range(_CALLS):
            reply = await cell.client.post("/tools/echo", json={"n": number})
            assert reply.status_code == 200, number
        refused = await cell.client.post("/tools/echo", json={"n": _CALLS})
        assert (refused.status_code, refused.json()["error"]["type"]) == (429, "proctor_call_limit")
        await cell.gateway.attempts.end(cell.opened.id, ProcessExit(ExitCause.EXITED, 0))
        (record,) = await cell.gateway.attempts.ended_after(0, wait_seconds=5)
        assert (record.outcome, record.limit, record.tool_calls) == (Outcome.BUDGET_LIMIT, Limit.CALLS, _CALLS)
        trajectory = cell.gateway.sink.trajectory()
        assert [event.seq for event in trajectory] == list(range(1, record.events + 1))
        assert sum(event.kind is EventKind.TOOL_CALL for event in trajectory) == _CALLS
