"""A gateway from its configuration to its end."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any

from proctor.adapters.mcp.launch import DatasetAccess
from proctor.bootstrap.gateway import GatewayParts, build_parts
from proctor.bootstrap.gateway_config import GatewayConfig
from proctor.gateway.app import build_app
from proctor.gateway.attempts import Attempts
from proctor.gateway.context import DEFAULT_HOST_NAMES, GatewayContext
from proctor.gateway.doors import mcp, tools
from proctor.gateway.listeners import Listeners
from proctor.gateway.patience import Patience
from proctor.gateway.ports import BriefText
from proctor.gateway.protocol import CONTROL_SOURCE
from proctor.gateway.toolboxes import ServersSpec, Toolboxes

logger = logging.getLogger("proctor.gateway")


async def serve(config: GatewayConfig, *, ended: asyncio.Event) -> None:
    """Serve until whoever started it has gone, or a signal comes.

    One line of JSON on standard output says that the control door is open, and where.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with build_parts(config) as parts:
        toolboxes = Toolboxes(build_servers(config, parts))
        context = build_context(config, parts, toolboxes)
        listeners = Listeners(config.sockets_dir)
        attempts = Attempts(context, listeners, earlier=parts.earlier, begun=parts.begun)
        listeners.serve(
            build_app(context, attempts, tool_routes=[*mcp.routes, *tools.routes]), on_malformed=attempts.note_malformed
        )
        try:
            control = await listeners.open(CONTROL_SOURCE)
            ready: dict[str, Any] = {"ready": True, "control": str(control)}
            if config.listen is not None:
                ready["listen"] = list(await listeners.open_tcp(config.listen.host, config.listen.port))
            print(json.dumps(ready), flush=True)  # noqa: T201 - the promise to whoever started it
            logger.info("gateway ready", extra={"run": config.run})
            await ended.wait()
        finally:
            await attempts.void()
            await toolboxes.close()
            await listeners.close_all()
    logger.info("gateway ended", extra={"run": config.run})


def build_context(config: GatewayConfig, parts: GatewayParts, toolboxes: Toolboxes) -> GatewayContext:
    """Return what the doors work on."""
    return GatewayContext(
        run=config.run,
        suite=config.suite,
        run_key=config.run_key.get_secret_value().encode(),
        operator_token=config.operator_token.get_secret_value(),
        sockets_dir=config.sockets_dir,
        sink=parts.sink,
        brief_of=lambda scenario: BriefText(*parts.prompts[scenario]),
        open_scripted=parts.open_scripted,
        open_provider=parts.open_provider,
        open_toolbox=toolboxes.open,
        probe=toolboxes.probe,
        patience=Patience(wait_seconds=config.retry.wait_seconds, pause_seconds=config.retry.pause_seconds),
        host_names=DEFAULT_HOST_NAMES | frozenset(name.lower() for name in config.host_names),
    )


def build_servers(config: GatewayConfig, parts: GatewayParts) -> ServersSpec:
    """Return what the servers under test need."""
    return ServersSpec(
        servers={server.name: server for server in config.suite.servers},
        datasets={
            name: DatasetAccess(
                host=scenario.dataset.host,
                port=scenario.dataset.port,
                user=scenario.dataset.user,
                password=scenario.dataset.password.get_secret_value(),
                database=scenario.dataset.database,
                secure=scenario.dataset.secure,
            )
            for name, scenario in config.scenarios.items()
        },
        secrets={name: secret.get_secret_value() for name, secret in config.secrets.items()},
        launcher=parts.launcher,
        toolboxes={(box.server, box.scenario): (box.host, box.port) for box in config.toolboxes},
        engine_losses=parts.engine_losses,
        look_at_engine=parts.look_at_engine,
        # Commands that were installed beside this program are found before the machine's.
        search_path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
    )
