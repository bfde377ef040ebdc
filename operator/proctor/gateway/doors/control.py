"""The operator's doors: open and end attempts, see which have ended for good, look at progress."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictInt, ValidationError
from pydantic.alias_generators import to_camel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from proctor.core.ids import CellKey
from proctor.core.trajectory.attempt_json import render_record
from proctor.core.trajectory.outcome import ExitCause, ProcessExit
from proctor.errors import InvalidInput
from proctor.gateway.attempts import Attempts
from proctor.gateway.context import GatewayContext
from proctor.gateway.requests import read_body

_MAX_BODY = 64 * 1024
_MAX_WAIT_SECONDS = 60.0
_MAX_MESSAGE = 400


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)


_Asked = TypeVar("_Asked", bound=_Request)


class _OpenRequest(_Request):
    cell: Annotated[str, Field(max_length=500)]
    attempt: Annotated[StrictInt, Field(ge=1, le=1000)]
    deadline_seconds: Annotated[StrictInt, Field(ge=1, le=86_400)]


class _EndRequest(_Request):
    cause: ExitCause
    exit_code: Annotated[StrictInt, Field(ge=-255, le=255)] | None = None
    message: Annotated[str, Field(max_length=65_536)] = ""


def build_routes(context: GatewayContext, attempts: Attempts) -> list[BaseRoute]:
    """Return the doors."""
    doors = _ControlDoors(context, attempts)
    return [
        Route("/runs/health", doors.health, methods=["GET"]),
        Route("/runs/probe", doors.probe, methods=["POST"]),
        Route("/runs/attempts", doors.open, methods=["POST"]),
        Route("/runs/attempts", doors.list_ended, methods=["GET"]),
        Route("/runs/attempts/{id}/end", doors.end, methods=["POST"]),
        Route("/runs/progress", doors.progress, methods=["GET"]),
    ]


class _ControlDoors:
    def __init__(self, context: GatewayContext, attempts: Attempts) -> None:
        self._context = context
        self._attempts = attempts

    async def health(self, _: Request) -> Response:
        return JSONResponse(
            {"run": self._context.run, "open": len(self._attempts.open_attempts), "problem": self._attempts.problem}
        )

    async def probe(self, _: Request) -> Response:
        if self._context.probe is None:
            raise InvalidInput(f"probing the servers of run {self._context.run}: the gateway has no toolbox")
        return JSONResponse(await self._context.probe())

    async def open(self, request: Request) -> Response:
        asked = await _parse(request, _OpenRequest)
        try:
            cell = CellKey.parse(asked.cell)
        except ValueError as error:
            raise InvalidInput(str(error)) from error
        opened = await self._attempts.open(cell, asked.attempt, deadline_seconds=asked.deadline_seconds)
        return JSONResponse(opened._asdict(), status_code=201)

    async def end(self, request: Request) -> Response:
        asked = await _parse(request, _EndRequest)
        process = ProcessExit(asked.cause, asked.exit_code, asked.message[-_MAX_MESSAGE:])
        await self._attempts.end(request.path_params["id"], process)
        return Response(status_code=204)

    async def list_ended(self, request: Request) -> Response:
        after = _whole(request, "after")
        wait = min(float(_whole(request, "wait")), _MAX_WAIT_SECONDS)
        records = await self._attempts.ended_after(after, wait_seconds=wait)
        return JSONResponse({"attempts": [render_record(record) for record in records], "next": after + len(records)})

    async def progress(self, _: Request) -> Response:
        return JSONResponse(
            {
                "problem": self._attempts.problem,
                "settling": self._attempts.settling,
                "voided": self._attempts.voided,
                "open": [
                    {
                        "id": opaque_id,
                        "cell": str(attempt.key.cell),
                        "attempt": attempt.key.attempt,
                        "requests": attempt.requests,
                        "turns": attempt.recorder.tally.turns,
                        "toolCalls": attempt.recorder.tally.tool_calls,
                        "waitedUs": attempt.waited_us,
                        "activeUs": attempt.active_us,
                        "quietUs": attempt.quiet_us,
                        "answered": attempt.answer.put is not None,
                    }
                    for opaque_id, attempt in self._attempts.open_attempts.items()
                ],
            }
        )


async def _parse(request: Request, model: type[_Asked]) -> _Asked:
    body = await read_body(request, _MAX_BODY)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        first: Any = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"{request.url.path}: {where}: {first['msg']}") from error


def _whole(request: Request, name: str) -> int:
    text = request.query_params.get(name, "0")
    if not text.isascii() or not text.isdecimal() or len(text) > 9:  # noqa: PLR2004 - fits any count of attempts
        raise InvalidInput(f"{request.url.path}: {name}: not a whole number")
    return int(text)
