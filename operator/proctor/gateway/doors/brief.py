"""GET /brief: all that an agent is told, and nothing else."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from proctor.core.digests import canonical_json
from proctor.core.trajectory.events import EventKind
from proctor.gateway.context import GatewayContext
from proctor.gateway.requests import attempt_of


def build_routes(context: GatewayContext) -> list[BaseRoute]:
    """Return the door."""

    async def read_brief(request: Request) -> Response:
        attempt = attempt_of(request)
        span = attempt.start()
        system, prompt = context.brief_of(attempt.key.cell.scenario)
        limits = attempt.budget.limits
        body = {
            "system": system,
            "prompt": prompt,
            "model": attempt.model.name,
            "maxTurns": limits.turns,
            "maxTokens": limits.tokens,
        }
        attempt.record(kind=EventKind.BRIEF_READ, span=span, result=canonical_json(body))
        return JSONResponse(body)

    return [Route("/brief", read_brief, methods=["GET"])]
