"""PUT /answer: where the final answer arrives."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from proctor.core.trajectory.events import EventKind
from proctor.gateway.attempt import MAX_ANSWER_BYTES
from proctor.gateway.requests import attempt_of, read_agent_body


async def put_answer(request: Request) -> Response:
    """Take the final answer; a later one replaces it."""
    attempt = attempt_of(request)
    span = attempt.start()
    body = await read_agent_body(request, MAX_ANSWER_BYTES)
    attempt.put_answer(body)
    attempt.record(kind=EventKind.ANSWER, span=span, request=body)
    return Response(status_code=204)


routes: list[BaseRoute] = [Route("/answer", put_answer, methods=["PUT"])]
