"""The control doors of a house: seed a dataset, serve it, stop serving it."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from collections.abc import AsyncIterator
from decimal import Decimal
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr, StrictInt, StringConstraints, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from proctor.adapters.clickhouse.datasets import Progress
from proctor.adapters.clickhouse.house import SeedOrderTexts
from proctor.api.fields import Instant
from proctor.core.digests import canonical_json
from proctor.core.scenarios.document import MAX_DOCUMENT_BYTES, Slug
from proctor.core.seeding.record import DatasetRecord
from proctor.errors import InvalidInput, ProctorError, Retryable
from proctor.local.engine import Known
from proctor.local.house.house import House
from proctor.local.house.ledger import DatasetHash, UserName

_MAX_BODY = 4 * MAX_DOCUMENT_BYTES
_ALIVE_SECONDS = 5.0
_HEALTH = "/healthz"
_Document = Annotated[str, StringConstraints(min_length=1, max_length=MAX_DOCUMENT_BYTES)]


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class _SeedRequest(_Asked):
    scenario: Slug
    recipe: _Document
    answer: _Document | None = None
    variants: _Document | None = None
    seed: Annotated[StrictInt, Field(ge=0, le=2**53 - 1)]
    anchor: Instant
    volume: Annotated[Decimal, Field(gt=0, lt=100, max_digits=8)]


class _ServeRequest(_Asked):
    hash: DatasetHash
    user: UserName
    password: Annotated[SecretStr, Field(min_length=16, max_length=256)]
    until: Instant


_Model = TypeVar("_Model", bound=_Asked)


def build_app(house: House, password: str) -> ASGIApp:
    """Return the application behind the control port.

    Args:
        house: what the doors work on.
        password: the administrator's: whoever knows it may do everything.
    """
    doors = _Doors(house)
    app = Starlette(
        routes=[
            Route(_HEALTH, doors.health, methods=["GET"]),
            Route("/datasets", doors.seed, methods=["POST"]),
            Route("/served", doors.serve, methods=["POST"]),
            Route("/served/{user}", doors.drop, methods=["DELETE"]),
        ],
        exception_handlers={ProctorError: _tell_error},
    )
    return _Guard(app, password)


class _Guard:
    def __init__(self, app: ASGIApp, password: str) -> None:
        self._app = app
        self._expected = f"Bearer {password}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        given = dict(scope["headers"]).get(b"authorization", b"")
        if scope["path"] != _HEALTH and not hmac.compare_digest(given, self._expected):
            refused = JSONResponse({"error": "the password is not the house's", "retryable": False}, 401)
            await refused(scope, receive, send)
            return
        await self._app(scope, receive, send)


class _Doors:
    def __init__(self, house: House) -> None:
        self._house = house

    async def health(self, _: Request) -> Response:
        if self._house.ready:
            return PlainTextResponse("ok\n")
        return PlainTextResponse("the results engine is away\n", HTTPStatus.SERVICE_UNAVAILABLE)

    async def seed(self, request: Request) -> Response:
        asked = await _parse(request, _SeedRequest)
        return StreamingResponse(self._seeding(SeedOrderTexts(**dict(asked))), media_type="application/x-ndjson")

    async def serve(self, request: Request) -> Response:
        asked = await _parse(request, _ServeRequest)
        user = Known.with_password(asked.user, asked.password.get_secret_value())
        entry = await self._house.serve(asked.hash, user, until=asked.until)
        return JSONResponse({"port": entry.port, "database": entry.database})

    async def drop(self, request: Request) -> Response:
        await self._house.drop(request.path_params["user"])
        return Response(status_code=HTTPStatus.NO_CONTENT)

    async def _seeding(self, wanted: SeedOrderTexts) -> AsyncIterator[bytes]:
        """Build a dataset, and say all along that it goes on; whoever leaves stops it, and may come back."""
        news: asyncio.Queue[Progress | None] = asyncio.Queue()
        task = asyncio.create_task(self._house.seed(wanted, news.put_nowait))
        task.add_done_callback(lambda _: news.put_nowait(None))
        try:
            async for line in _tell(news):
                yield line
            yield _line(await _outcome(task))
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, ProctorError):
                await task


async def _tell(news: asyncio.Queue[Progress | None]) -> AsyncIterator[bytes]:
    while True:
        try:
            async with asyncio.timeout(_ALIVE_SECONDS):
                progress = await news.get()
        except TimeoutError:
            yield _line({"alive": True})
            continue
        if progress is None:
            return
        yield _line({"stage": progress.stage, "rows": progress.rows, "total": progress.total})


async def _outcome(task: asyncio.Task[DatasetRecord]) -> dict[str, Any]:
    try:
        return {"record": (await task).model_dump(mode="json")}
    except ProctorError as error:
        return _render_error(error)


async def _tell_error(_: Request, error: Exception) -> Response:
    status = HTTPStatus.SERVICE_UNAVAILABLE if isinstance(error, Retryable) else HTTPStatus.UNPROCESSABLE_ENTITY
    return JSONResponse(_render_error(error), status)


def _render_error(error: Exception) -> dict[str, Any]:
    return {"error": str(error), "retryable": isinstance(error, Retryable)}


def _line(value: dict[str, Any]) -> bytes:
    return canonical_json(value) + b"\n"


async def _parse(request: Request, model: type[_Model]) -> _Model:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _MAX_BODY:
            raise InvalidInput(f"{request.url.path}: the body is larger than {_MAX_BODY} bytes")
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"{request.url.path}: {where}: {first['msg']}") from None
