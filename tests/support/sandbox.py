"""Makers of sandboxes that run the attacker, as an agent, as a server under test, and outside for comparison."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from proctor.adapters.sandbox.agents import AgentPlace, agent_spec
from proctor.adapters.sandbox.availability import sandbox_available
from proctor.adapters.sandbox.own_agents import OwnAgent, own_agent_spec
from proctor.adapters.sandbox.servers import ServerRequest, server_spec
from proctor.adapters.sandbox.spec import SandboxSpec
from proctor.adapters.sandbox.starting import Started, Streams, start

ATTACKER = (Path(__file__).parent / "attacks.py").read_text()

needs_sandbox = [
    pytest.mark.sandbox,
    pytest.mark.skipif(sandbox_available() is not None, reason=str(sandbox_available())),
]

TOKEN = "token-of-this-attempt"


class Role(StrEnum):
    """Who attacks."""

    AGENT = "agent"  # in the sandbox of the builtin agent
    OWN_AGENT = "own-agent"  # a suite's own command
    SERVER = "server"

    @property
    def way_out(self) -> str:
        """The one socket that it is given."""
        return "/run/dataset.sock" if self is Role.SERVER else "/run/gateway.sock"


ROLES = [pytest.param(role, id=str(role)) for role in Role]


@contextlib.asynccontextmanager
async def open_socket(folder: Path, name: str = "g.sock") -> AsyncIterator[Path]:
    """Listen on a socket that greets whoever connects; stands for the gateway, or for an engine's bridge."""

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()
        await writer.wait_closed()

    path = folder / name
    server = await asyncio.start_unix_server(greet, path)
    path.chmod(0o666)
    async with server:
        yield path


@contextlib.contextmanager
def short_folder() -> Any:
    """A folder whose sockets have paths that the kernel takes."""
    with tempfile.TemporaryDirectory(prefix="pt-") as folder:
        yield Path(folder)


def build_spec(role: Role, code: str, socket: Path, *, variables: dict[str, str] | None = None) -> SandboxSpec:
    """A sandbox of that role which runs Python code instead of its command."""
    if role is Role.AGENT:
        spec = agent_spec(socket, TOKEN)
        boot = "import os\nos.read(0, 1) or os._exit(125)\nos.closerange(3, 4096)\n"
        command = (*spec.command[:-1], boot + code)
        return replace(spec, command=command, environment={**spec.environment, **(variables or {})})
    if role is Role.OWN_AGENT:
        agent = OwnAgent(
            command=(sys.executable, "-c", code),
            environment=variables or {},
            folder=socket.parent,
            search_path="/usr/bin:/bin",
        )
        return own_agent_spec(agent, AgentPlace(socket=socket, token=TOKEN))
    request = ServerRequest(
        command=(sys.executable, "-c", code), environment=variables or {}, search_path="/usr/bin:/bin", dataset=socket
    )
    return server_spec(request)


async def run(spec: SandboxSpec, *, seconds: float = 60) -> tuple[int, bytes, bytes]:
    """Run a sandbox to its end; return exit code, output and errors."""
    pipe = asyncio.subprocess.PIPE
    started = await start(spec, Streams(pipe, pipe, pipe, 2**24))
    async with asyncio.timeout(seconds):
        try:
            return await collect(started)
        finally:
            started.kill()
            await started.gone()
            started.close()


async def collect(started: Started) -> tuple[int, bytes, bytes]:
    """Read all output; return it with the exit code."""
    process = started.process
    assert process.stdout is not None
    assert process.stderr is not None
    output, errors = await asyncio.gather(process.stdout.read(), process.stderr.read())
    return await started.gone(), output, errors


async def attack(role: Role, orders: dict[str, Any], socket: Path, **changes: Any) -> dict[str, Any]:
    """Let the attacker loose in a sandbox; return what it reports."""
    spec = replace(build_spec(role, ATTACKER, socket, variables={"ATTACK": json.dumps(orders)}), **changes)
    code, output, errors = await run(spec)
    assert code == 0, errors.decode()
    report: dict[str, Any] = json.loads(output)
    return report


async def attack_outside(orders: dict[str, Any]) -> dict[str, Any]:
    """The same on this machine: shows that the probes find what is there."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        ATTACKER,
        env={"ATTACK": json.dumps(orders), "PROBE_KEY": "sk-outside"},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    report: dict[str, Any] = json.loads(output)
    return report
