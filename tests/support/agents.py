"""Makers of attempts by real agents: a real gateway, a real sandbox, and a model that a test plays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.adapters.control import Door, OpenProgress
from proctor.adapters.sandbox.sandboxed import launch
from proctor.adapters.sandbox.spec import SandboxSpec
from proctor.core.trajectory.events import Status
from proctor.core.trajectory.outcome import AttemptRecord
from proctor.local.launching import Patience
from support.mcp import Cell, make_server, open_cell

Json = dict[str, Any]
Play = Callable[[Json], Json]

SOON = Patience(seconds=4.0, answered_seconds=1.0)
"""Long for a machine that does nothing but this, short for a test."""


def say(text: str, *, stop_reason: str = "end_turn") -> Json:
    return _reply([{"type": "text", "text": text}], stop_reason)


def use(name: str, arguments: Json, *, text: str = "") -> Json:
    said = [{"type": "text", "text": text}] if text else []
    return _reply([*said, {"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments}], "tool_use")


def _reply(content: list[Json], stop_reason: str) -> Json:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted/newest",
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


def look_once(body: Json) -> Json:
    """A model that calls the first tool, and then answers with what it returned."""
    last = body["messages"][-1]["content"]
    results = [block for block in last if isinstance(block, dict) and block["type"] == "tool_result"]
    if not results:
        return use(body["tools"][0]["name"], {"q": "what broke?"}, text="I look.")
    return say(f"It said {results[0]['content'][0]['text']}")


def look_for_ever(body: Json) -> Json:
    """A model that never has enough."""
    return use(body["tools"][0]["name"], {"q": "more"}, text="Not yet.")


@dataclass
class Work:
    """An open attempt, and how an agent's work on it ended.

    Attributes:
        cell: the gateway's side.
        asked: bodies of the model calls, as the model got them.
    """

    cell: Cell
    asked: list[Json] = field(default_factory=list)

    @property
    def door(self) -> Door:
        return Door(Path(self.cell.opened.socket), self.cell.opened.token)

    @property
    def record(self) -> AttemptRecord:
        return self.cell.gateway.sink.attempts[-1]

    @property
    def denied(self) -> list[tuple[str, str]]:
        events = self.cell.gateway.sink.trajectory()
        return [(event.name, event.error_class) for event in events if event.status is Status.DENIED]

    @property
    def answer(self) -> str:
        return self.cell.gateway.sink.blobs[self.record.answer_digest].decode()

    async def run(self, spec: SandboxSpec, *, patience: Patience | None = None) -> AttemptRecord:
        """Let an agent work to its end, as `proctor run` does."""
        patience = patience or Patience()
        running = await launch(spec, find_hang=lambda silent: patience.find_hang(self._progress(), silent), grace=0.5)
        async with asyncio.timeout(120):
            ended = await running.wait()
        await self.cell.gateway.attempts.end(self.cell.opened.id, ended)
        return self.record

    def _progress(self) -> OpenProgress:
        attempt = self.cell.attempt
        return OpenProgress(quiet_us=attempt.quiet_us, answered=attempt.answer.put is not None)


@asynccontextmanager
async def open_work(play: Play = look_once, **limits: Any) -> AsyncIterator[Work]:
    """A gateway with an open attempt, over a server that has one tool."""
    asked: list[Json] = []

    def open_scripted(*_: object, **__: object) -> Play:
        def note(body: Json) -> Json:
            asked.append(body)
            return play(body)

        return note

    server = make_server(allowedTools=["echo"])
    async with open_cell(server, agent=limits or None, parts={"open_scripted": open_scripted}) as cell:
        yield Work(cell, asked)


def write_program(path: Path, text: str) -> Path:
    """Write a script that can be run."""
    path.write_text(text)
    path.chmod(0o755)
    return path
