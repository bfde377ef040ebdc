"""The doors of an attempt, over real sockets."""

from __future__ import annotations

import asyncio

import pytest

from proctor.core.trajectory.outcome import AnswerSource, ExitCause, Outcome, ProcessExit
from proctor.errors import Terminal
from support.gateway import CELL, run_gateway

EXITED = ProcessExit(ExitCause.EXITED, 0)


async def test_an_attempt_from_brief_to_listed() -> None:
    """M-A8, P6: what an agent does through the doors is the record; it is listed once it has ended."""
    async with run_gateway() as gateway, gateway.control() as control:
        reply = await control.post("/runs/attempts", json={"cell": str(CELL), "attempt": 1, "deadlineSeconds": 60})
        assert reply.status_code == 201
        opened = reply.json()
        async with gateway.client(opened["socket"], opened["token"]) as agent:
            brief = (await agent.get("/brief")).json()
            assert brief == {
                "system": "You are an SRE.",
                "prompt": "What broke?",
                "model": "scripted/newest",
                "maxTurns": 25,
                "maxTokens": 400_000,
            }
            body = {"model": brief["model"], "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
            message = (await agent.post("/v1/messages", json=body)).json()
            assert message["content"][0]["text"] == "played newest"
            assert (await agent.put("/answer", content="the cart database")).status_code == 204
        ended = await control.post(f"/runs/attempts/{opened['id']}/end", json={"cause": "exited", "exitCode": 0})
        assert ended.status_code == 204
        listed = (await control.get("/runs/attempts?after=0&wait=5")).json()
        assert listed["next"] == 1
        assert listed["attempts"][0]["outcome"] == Outcome.GAVE_UP  # it never called a tool
        assert listed["attempts"][0]["answer_source"] == AnswerSource.PUT
        assert [event.seq for event in gateway.sink.trajectory()] == [1, 2, 3, 4, 5]


async def test_an_attempt_is_not_listed_before_the_store_has_it() -> None:
    """P44: ended is what the store has acknowledged; until then nobody is told."""
    acknowledged = asyncio.Event()
    async with run_gateway() as gateway:
        gateway.sink.hold = acknowledged.wait
        opened = await gateway.open()
        await gateway.attempts.end(opened.id, EXITED)
        assert await gateway.attempts.ended_after(0, wait_seconds=0) == []
        waiting = asyncio.create_task(gateway.attempts.ended_after(0, wait_seconds=30))
        acknowledged.set()
        assert [record.outcome for record in await waiting] == [Outcome.INFRA_ERROR]


async def test_a_record_that_can_not_be_kept_is_told_and_infrastructures() -> None:
    """Faults: a full disk is a clear error; an attempt with a hole in its record is worth nothing."""
    full = Terminal("spool: the disk is full")
    async with run_gateway() as gateway, gateway.control() as control:
        opened = await gateway.open()
        kept = gateway.sink.submit

        def refuse(**_: object) -> None:
            raise full

        gateway.sink.submit = refuse  # type: ignore[method-assign]
        async with gateway.agent(opened) as agent:
            assert (await agent.put("/answer", content="x")).status_code == 204
        attempt = gateway.attempts.find(opened.id)
        assert attempt is not None
        assert "the disk is full" in attempt.infra_failure
        reply = await control.post(f"/runs/attempts/{opened.id}/end", json={"cause": "exited", "exitCode": 0})
        assert reply.status_code == 503
        assert "the disk is full" in reply.json()["error"]["message"]
        assert (await control.get("/runs/health")).json()["problem"] == "spool: the disk is full"
        gateway.sink.submit = kept  # type: ignore[method-assign]
        assert await gateway.attempts.ended_after(0, wait_seconds=0) == []


async def test_loops_of_an_agent_do_not_fill_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """S21: requests, refusals and answers of one attempt are bounded."""
    monkeypatch.setattr("proctor.gateway.guard.MAX_REQUESTS", 8)
    monkeypatch.setattr("proctor.gateway.attempt._MAX_DENIED", 3)
    monkeypatch.setattr("proctor.gateway.attempt._MAX_ANSWERS", 2)
    async with run_gateway() as gateway:
        opened = await gateway.open()
        async with gateway.agent(opened) as agent:
            statuses = [(await agent.put("/answer", content=str(number))).status_code for number in range(12)]
        assert statuses == [204, 204] + [429] * 10
        assert len(gateway.sink.trajectory()) == 1 + 2 + 3
        record_of = gateway.attempts.find(opened.id)
        assert record_of is not None
        assert record_of.answer.body == b"1"
