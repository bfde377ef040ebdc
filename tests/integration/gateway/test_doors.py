"""The doors of an attempt, over real sockets."""

from __future__ import annotations

from proctor.core.trajectory.outcome import AnswerSource, ExitCause, Outcome, ProcessExit
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
