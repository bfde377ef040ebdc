"""A gateway from its configuration to its end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
from collections.abc import Coroutine
from typing import Any

from proctor.bootstrap.gateway import GatewayParts, build_parts
from proctor.bootstrap.gateway_config import GatewayConfig
from proctor.gateway.app import build_app
from proctor.gateway.attempts import Attempts
from proctor.gateway.context import GatewayContext
from proctor.gateway.listeners import Listeners
from proctor.gateway.ports import BriefText
from proctor.gateway.protocol import CONTROL_SOURCE

logger = logging.getLogger("proctor.gateway")


async def serve(config: GatewayConfig, *, until: Coroutine[Any, Any, None]) -> None:
    """Serve until something ends: standard input of whoever started it, or a signal.

    One line of JSON on standard output says that the control door is open, and where.
    """
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with build_parts(config) as parts:
        context = build_context(config, parts)
        listeners = Listeners(config.sockets_dir)
        attempts = Attempts(context, listeners, earlier=parts.earlier)
        listeners.serve(build_app(context, attempts))
        try:
            control = await listeners.open(CONTROL_SOURCE)
            ready: dict[str, Any] = {"ready": True, "control": str(control)}
            if config.listen is not None:
                ready["listen"] = list(await listeners.open_tcp(config.listen.host, config.listen.port))
            print(json.dumps(ready), flush=True)  # noqa: T201 - the promise to whoever started it
            await _first(until, stopped)
        finally:
            await attempts.void()
            await listeners.close_all()
    logger.info("gateway ended", extra={"run": config.run})


def build_context(config: GatewayConfig, parts: GatewayParts) -> GatewayContext:
    """Return the context that the doors work on."""
    return GatewayContext(
        run=config.run,
        suite=config.suite,
        run_key=config.run_key.get_secret_value().encode(),
        operator_token=config.operator_token.get_secret_value(),
        sockets_dir=config.sockets_dir,
        wait_cap_seconds=config.retry.wait_seconds,
        sink=parts.sink,
        brief_of=lambda scenario: BriefText(*parts.prompts[scenario]),
        open_scripted=parts.open_scripted,
        open_provider=parts.open_provider,
        host_names=GatewayContext.host_names | frozenset(config.host_names),
    )


async def _first(until: Coroutine[Any, Any, None], stopped: asyncio.Event) -> None:
    waiting = [asyncio.create_task(until), asyncio.create_task(stopped.wait())]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
