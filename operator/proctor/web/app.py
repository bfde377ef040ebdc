"""The page's routes: verdicts as JSON for gates, and a run's report for people."""

from __future__ import annotations

import hmac
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from proctor.adapters.kube.kinds import EVAL_RUN, EVAL_SUITE, Kind
from proctor.api.fields import NAME_PATTERN
from proctor.core.reports.page import page_policy
from proctor.errors import InvalidInput, ProctorError, Retryable
from proctor.reconcile.answers import Answer, answer_run, answer_suite
from proctor.web.reading import Reader

HEALTH_PATH = "/healthz"
_MOST_NAME = 63
_NAME = re.compile(NAME_PATTERN)
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

RenderReport = Callable[[dict[str, Any]], Awaitable[str]]
"""An EvalRun → its report as HTML."""


def build_app(reader: Reader, token: str, render_report: RenderReport | None = None) -> Starlette:
    """Return the application.

    Args:
        reader: the API server.
        token: that every request but for health has to bear.
        render_report: None where no results store is configured.
    """
    pages = _Pages(reader, render_report)
    return Starlette(
        routes=[
            Route(HEALTH_PATH, _health),
            Route("/v1/{namespace}/evalruns/{name}", pages.run),
            Route("/v1/{namespace}/evalsuites/{name}", pages.suite),
            Route("/v1/{namespace}/evalruns/{name}/report", pages.report),
        ],
        middleware=[Middleware(_Guard, token=token)],
        exception_handlers={ProctorError: _refuse},
    )


async def _health(_: Request) -> Response:
    return PlainTextResponse("ok\n")


class _Guard:
    """Lets nobody in without the token; it is compared in constant time."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] == HEALTH_PATH or self._admits(scope):
            await self._app(scope, receive, send)
            return
        headers = {**_HEADERS, "WWW-Authenticate": "Bearer"}
        refusal = JSONResponse({"error": "a bearer token is needed"}, HTTPStatus.UNAUTHORIZED, headers)
        await refusal(scope, receive, send)

    def _admits(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(given) == 1 and hmac.compare_digest(given[0], self._expected)


class _Pages:
    """Answers of one API server."""

    def __init__(self, reader: Reader, render_report: RenderReport | None) -> None:
        self._reader = reader
        self._render_report = render_report

    async def run(self, request: Request) -> Response:
        """Answer with an EvalRun's verdict."""
        return _tell(answer_run(await self._read(EVAL_RUN, request)))

    async def suite(self, request: Request) -> Response:
        """Answer with the verdict of an EvalSuite's gate."""
        return _tell(answer_suite(await self._read(EVAL_SUITE, request)))

    async def report(self, request: Request) -> Response:
        """Show what a run showed."""
        if self._render_report is None:
            raise InvalidInput("reports: this installation has no results store")
        page = await self._render_report(await self._read(EVAL_RUN, request))
        # What the page says of itself, and what it can't: nobody may frame it.
        policy = f"{page_policy()}; frame-ancestors 'none'"
        return HTMLResponse(page, headers=_HEADERS | {"Content-Security-Policy": policy})

    async def _read(self, kind: Kind, request: Request) -> dict[str, Any]:
        namespace, name = (_check_name(request.path_params[part]) for part in ("namespace", "name"))
        body = await self._reader.get(kind, namespace, name)
        if body is None:
            raise _NotThere(f"{kind} {namespace}/{name}: there is none")
        return body


class _NotThere(InvalidInput):
    """Nobody has made it, or somebody has deleted it."""


def _check_name(name: str) -> str:
    if len(name) > _MOST_NAME or _NAME.fullmatch(name) is None:
        raise _NotThere("no object has such a name")
    return name


def _tell(answer: Answer) -> Response:
    return JSONResponse(answer.to_json(), headers=_HEADERS)


async def _refuse(_: Request, error: Exception) -> Response:
    match error:
        case _NotThere():
            status = HTTPStatus.NOT_FOUND
        case InvalidInput():
            status = HTTPStatus.CONFLICT
        case Retryable():
            status = HTTPStatus.SERVICE_UNAVAILABLE
        case _:
            status = HTTPStatus.BAD_GATEWAY
    return JSONResponse({"error": str(error)}, status, _HEADERS)
