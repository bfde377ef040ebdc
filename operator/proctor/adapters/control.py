"""Client of the gateway's control doors, over its socket or over the network."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from proctor.adapters.wire import ConnectError, CutError, Wire
from proctor.core.ids import AttemptKey
from proctor.core.trajectory.attempt_json import parse_record
from proctor.core.trajectory.outcome import AttemptRecord, ProcessExit
from proctor.errors import InvalidInput, Retryable, Terminal
from proctor.reconcile.observed import ProbeSeen

_CONNECT_SECONDS = 5.0
_CALL_SECONDS = 30.0
POLL_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Door:
    """The only thing that a sandbox gets: a socket and a token for it."""

    socket: Path
    token: str


@dataclass(frozen=True, slots=True)
class OpenProgress:
    """How far an open attempt is, as its gateway counts it.

    Attributes:
        requests: requests seen at any of its doors.
        turns: model calls answered.
        tool_calls: tool calls.
        waited_us: microseconds spent waiting for an overloaded provider.
        quiet_us: microseconds since it was last at work on a request.
        answered: it has sent an answer.
    """

    requests: int = 0
    turns: int = 0
    tool_calls: int = 0
    waited_us: int = 0
    quiet_us: int = 0
    answered: bool = False


@dataclass(frozen=True, slots=True)
class GatewayProgress:
    """What a gateway has not listed as ended.

    Attributes:
        open: open attempts by their opaque ids.
        settling: opaque ids of attempts that were ended, and whose rows the store has not acknowledged.
        problem: why its record can't be kept; empty while it can.
        voided: opaque ids of attempts that were open when an earlier gateway of the run ended.
    """

    open: dict[str, OpenProgress] = field(default_factory=dict)
    settling: frozenset[str] = frozenset()
    problem: str = ""
    voided: frozenset[str] = frozenset()


class GatewayControl:
    """Speaks to the control doors.

    Args:
        where: the control socket, or the address as ``http://host:port``.
        token: the operator's token.
    """

    def __init__(self, where: Path | str, token: str) -> None:
        on_socket = isinstance(where, Path)
        self._wire = Wire(
            "http://gateway" if on_socket else str(where),
            socket=str(where) if on_socket else None,
            connect_seconds=_CONNECT_SECONDS,
        )
        self._headers = {"authorization": f"Bearer {token}"}

    async def close(self) -> None:
        """Let go of the connections."""
        self._wire.close()

    async def probe(self, *, patience: float) -> tuple[ProbeSeen, ...]:
        """Let the gateway start every server once, and return what each answered.

        Args:
            patience: seconds until the gateway itself counts as hanging.

        Raises:
            Retryable: the gateway can't be reached.
            InvalidInput: it refuses.
        """
        answer = await self._call("POST", "/runs/probe", seconds=patience)
        return tuple(_parse_probe(server) for server in answer["servers"])

    async def open(self, key: AttemptKey, *, deadline_seconds: int) -> Door:
        """Open an attempt.

        Raises:
            Retryable: the gateway can't be reached.
            InvalidInput: it refuses.
        """
        body = {"cell": str(key.cell), "attempt": key.attempt, "deadlineSeconds": deadline_seconds}
        answer = await self._call("POST", "/runs/attempts", body)
        return Door(Path(answer["socket"]), answer["token"])

    async def end(self, key: AttemptKey, exit_: ProcessExit) -> None:
        """Tell how an attempt's process ended.

        Raises:
            Retryable: the gateway can't be reached.
            InvalidInput: it knows no such open attempt.
        """
        body = {"cause": exit_.cause.value, "exitCode": exit_.exit_code, "message": exit_.message}
        await self._call("POST", f"/runs/attempts/{key.opaque_id}/end", body)

    async def list_ended(self, after: int, *, wait: int) -> list[AttemptRecord]:
        """Return attempts whose rows the store has, but the first ``after``; wait for one if there is none yet.

        Raises:
            Retryable: the gateway can't be reached.
        """
        query = urlencode({"after": after, "wait": wait})
        answer = await self._call("GET", f"/runs/attempts?{query}", seconds=wait + _CALL_SECONDS)
        return [parse_record(values) for values in answer["attempts"]]

    async def read_progress(self) -> dict[str, OpenProgress]:
        """Return the open attempts by their opaque ids.

        Raises:
            Retryable: the gateway can't be reached.
        """
        return (await self.read_state()).open

    async def read_state(self) -> GatewayProgress:
        """Return all that is not listed as ended.

        Raises:
            Retryable: the gateway can't be reached.
        """
        answer = await self._call("GET", "/runs/progress")
        return GatewayProgress(
            {seen["id"]: _parse_progress(seen) for seen in answer["open"]},
            frozenset(answer.get("settling", ())),
            answer["problem"],
            frozenset(answer.get("voided", ())),
        )

    async def _call(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, seconds: float = _CALL_SECONDS
    ) -> Any:  # noqa: ANN401 - JSON
        sent = None if body is None else json.dumps(body).encode()
        try:
            async with self._wire.exchange(method, path, self._headers, body=sent, idle_seconds=seconds) as reply:
                content = b"".join([piece async for piece in reply.pieces()])
            answer = json.loads(content) if content else None
        except (ConnectError, CutError, ValueError) as e:
            raise Retryable(f"asking the gateway for {method} {path}: {e or type(e).__name__}") from e
        if reply.status < HTTPStatus.BAD_REQUEST:
            return answer
        problem = _describe_problem(answer)
        if reply.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise InvalidInput(f"the gateway refused {method} {path}: {problem}")
        raise Terminal(f"the gateway failed at {method} {path}: {problem}")


def _describe_problem(answer: object) -> str:
    if isinstance(answer, dict) and isinstance(answer.get("error"), dict):
        return str(answer["error"].get("message", ""))[:400]
    return str(answer)[:400]


def _parse_progress(seen: dict[str, Any]) -> OpenProgress:
    return OpenProgress(
        requests=seen["requests"],
        turns=seen["turns"],
        tool_calls=seen["toolCalls"],
        waited_us=seen["waitedUs"],
        quiet_us=seen["quietUs"],
        answered=seen["answered"],
    )


def _parse_probe(values: dict[str, Any]) -> ProbeSeen:
    error = values["error"]
    return ProbeSeen(
        server=values["server"],
        scenario=values["scenario"],
        tools_digest=values["digest"],
        reason="ServerNotReady" if error else "",
        message=error,
    )
