"""Makers for gateways: a suite, a context of plain parts, and clients of its sockets."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
from starlette.routing import BaseRoute

from proctor.api.suite import EvalSuiteSpec
from proctor.core.ids import AttemptKey, CellKey
from proctor.core.trajectory.events import Event
from proctor.core.trajectory.outcome import AttemptRecord
from proctor.gateway.app import build_app
from proctor.gateway.attempts import Attempts, OpenedAttempt
from proctor.gateway.context import GatewayContext
from proctor.gateway.listeners import Listeners
from proctor.gateway.ports import BriefText
from proctor.gateway.protocol import CONTROL_SOURCE

RUN = "11111111-2222-3333-4444-555555555555"
OPERATOR_TOKEN = "operator-token-operator-token-operator"
RUN_KEY = b"run-key-run-key-run-key-run-key-run-key"
CELL = CellKey("error-root-cause", "sql", "newest", 1)


def make_suite(*, models: Sequence[Mapping[str, Any]] = (), agent: Mapping[str, Any] | None = None) -> EvalSuiteSpec:
    """A small suite; further models and agent fields as in a manifest."""
    return EvalSuiteSpec.model_validate(
        {
            "scenarios": [{"name": "error-root-cause", "volume": "0.01"}],
            "anchor": "2026-11-30T12:00:00Z",
            "servers": [{"name": "sql", "stdio": {"command": ["sql-server"]}, "allowedTools": ["run_query"]}],
            "models": [{"name": "newest", "scripted": {"policy": "newest"}}, *models],
            "agent": dict(agent or {}),
            "replicates": 1,
            "judge": {"none": True},
            "gate": {"enforcement": "Audit"},
        }
    )


@dataclass
class MemorySink:
    """Keeps the record; acknowledges at once unless told to hold."""

    events: list[tuple[AttemptKey, Event]] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)
    attempts: list[AttemptRecord] = field(default_factory=list)
    hold: Callable[[], Any] | None = None

    def submit(
        self,
        *,
        events: Sequence[tuple[AttemptKey, Event]] = (),
        blobs: Mapping[str, bytes] | None = None,
        attempts: Sequence[AttemptRecord] = (),
    ) -> None:
        self.events.extend(events)
        self.blobs.update(blobs or {})
        self.attempts.extend(attempts)

    async def settled(self, key: AttemptKey) -> None:  # noqa: ARG002 - the port's name
        if self.hold is not None:
            await self.hold()

    def trajectory(self, key: AttemptKey | None = None) -> list[Event]:
        return [event for at, event in self.events if key is None or at == key]

    def kinds(self) -> list[tuple[str, str]]:
        return [(event.kind.value, event.error_class) for _, event in self.events]


def say(text: str, *, stop_reason: str = "end_turn") -> dict[str, Any]:
    """A reply of a model that says something."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted/newest",
        "content": [{"type": "text", "text": text}],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


def play_text(policy: str, *, scenario: str, sql_tool: object) -> Callable[[dict[str, Any]], dict[str, Any]]:  # noqa: ARG001
    """Scripted models that only say which policy they are."""
    return lambda _: say(f"played {policy}")


def no_provider(_: object) -> Any:
    raise AssertionError("this test has no provider")


@dataclass
class RunningGateway:
    """A gateway in this process, behind real sockets."""

    context: GatewayContext
    attempts: Attempts
    listeners: Listeners
    sink: MemorySink

    def client(self, socket: str | Path, token: str = "", **headers: str) -> httpx.AsyncClient:
        auth = {"authorization": f"Bearer {token}"} if token else {}
        transport = httpx.AsyncHTTPTransport(uds=str(socket))
        return httpx.AsyncClient(
            transport=transport, base_url="http://gateway", headers={**auth, **headers}, timeout=30, trust_env=False
        )

    def control(self) -> httpx.AsyncClient:
        return self.client(self.listeners.path(CONTROL_SOURCE), OPERATOR_TOKEN)

    async def open(self, cell: CellKey = CELL, *, attempt: int = 1, seconds: int = 300) -> OpenedAttempt:
        return await self.attempts.open(cell, attempt, deadline_seconds=seconds)

    def agent(self, opened: OpenedAttempt) -> httpx.AsyncClient:
        return self.client(opened.socket, opened.token)


@asynccontextmanager
async def run_gateway(
    *, tool_routes: Sequence[BaseRoute] = (), suite: EvalSuiteSpec | None = None, **parts: Any
) -> AsyncIterator[RunningGateway]:
    """Run a gateway whose parts are plain makers unless given."""
    sink = MemorySink()
    with tempfile.TemporaryDirectory(prefix="pg") as directory:
        context = GatewayContext(
            run=RUN,
            suite=suite or make_suite(),
            run_key=RUN_KEY,
            operator_token=OPERATOR_TOKEN,
            sockets_dir=Path(directory),
            sink=sink,
            brief_of=lambda _: BriefText("You are an SRE.", "What broke?"),
            open_scripted=play_text,
            open_provider=no_provider,
        )
        context = replace(context, **parts)
        listeners = Listeners(context.sockets_dir)
        attempts = Attempts(context, listeners)
        listeners.serve(build_app(context, attempts, tool_routes=tool_routes), on_malformed=attempts.note_malformed)
        await listeners.open(CONTROL_SOURCE)
        try:
            yield RunningGateway(context, attempts, listeners, sink)
        finally:
            await attempts.void()
            await listeners.close_all()
