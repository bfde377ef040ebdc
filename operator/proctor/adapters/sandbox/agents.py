"""The sandbox of an agent: a Python, the agent, the gateway's socket, and nothing else."""

from __future__ import annotations

import compileall
import functools
import importlib.util
from collections.abc import Mapping
from pathlib import Path

from proctor.adapters.sandbox.places import base_interpreter, hidden_places, system_links, system_mounts
from proctor.adapters.sandbox.spec import SCRATCH, Isolation, Limits, Mount, SandboxSpec, Ways
from proctor.errors import InvalidInput, Terminal

AGENT_FOLDER = Path("/opt/agent")
"""Where the builtin agent is inside; the folder says nothing of what it is for."""

GATEWAY_SOCKET = Path("/run/gateway.sock")
GATEWAY_PORT = 8787
"""Where an agent that speaks TCP only finds the gateway, on 127.0.0.1 inside."""

PYTHON_OPTIONS = ("-I", "-S", "-E", "-B")
"""No site, no environment, no user's folder: a fast start, and nothing but the standard library."""

_BASIC_ENVIRONMENT = {"HOME": SCRATCH, "TMPDIR": SCRATCH, "LANG": "C.UTF-8"}

_BOOT = """\
import os, sys
os.read(0, 1) or sys.exit(125)
os.closerange(3, 4096)
sys.path.insert(0, {folder!r})
from proctor_agent.__main__ import main
sys.exit(main())
"""
"""Waits at the gate, lets go of everything that it was handed, and runs the agent."""


def agent_spec(
    socket: Path,
    token: str,
    *,
    stream: bool = True,
    limits: Limits | None = None,
    private: tuple[Path, ...] = (),
    isolation: Isolation = Isolation.BWRAP,
) -> SandboxSpec:
    """Return the sandbox of the builtin agent for one attempt.

    Args:
        socket: the attempt's socket at the gateway.
        token: the attempt's token.
        stream: whether the agent asks for streamed replies.
        limits: what it may use.
        private: what must not be seen inside, wherever it is: data and scenario folders.
        isolation: bubblewrap, or an ordinary process.
    """
    package = _find_agent()
    sealed = isolation is Isolation.BWRAP
    mounts = (
        *system_mounts(),
        Mount(package, AGENT_FOLDER / package.name),
        Mount(socket.resolve(), GATEWAY_SOCKET),
    )
    return SandboxSpec(
        command=(
            str(base_interpreter()),
            *PYTHON_OPTIONS,
            "-c",
            _BOOT.format(folder=str(AGENT_FOLDER if sealed else package.parent)),
        ),
        environment={
            **_BASIC_ENVIRONMENT,
            "PROCTOR_GATEWAY": f"unix:{GATEWAY_SOCKET if sealed else socket}",
            "PROCTOR_TOKEN": token,
            **({} if stream else {"PROCTOR_STREAM": "0"}),
        },
        mounts=mounts,
        links=system_links(),
        hidden=hidden_places(system_mounts(), private),
        limits=limits or Limits(),
        isolation=isolation,
    )


def command_agent_spec(
    command: tuple[str, ...],
    socket: Path,
    *,
    environment: Mapping[str, str],
    mounts: tuple[Mount, ...] = (),
    limits: Limits | None = None,
    private: tuple[Path, ...] = (),
) -> SandboxSpec:
    """Return the sandbox of any other agent: it finds the gateway on 127.0.0.1, port `GATEWAY_PORT`, and its socket.

    Args:
        command: an absolute path inside the sandbox, and arguments.
        socket: the attempt's socket at the gateway.
        environment: all of it but HOME, TMPDIR and LANG.
        mounts: what the command needs beyond the system's programs.
        limits: what it may use.
        private: what must not be seen inside.

    Raises:
        InvalidInput: the command's path is not absolute.
    """
    if not command or not command[0].startswith("/"):
        raise InvalidInput(f"agent command {' '.join(command)!r}: the program needs an absolute path")
    seen = (*system_mounts(), *mounts)
    return SandboxSpec(
        command=command,
        environment={**_BASIC_ENVIRONMENT, **environment},
        mounts=(*seen, Mount(forwarder_file(), FORWARDER), Mount(socket.resolve(), GATEWAY_SOCKET)),
        links=system_links(),
        hidden=hidden_places(seen, private),
        limits=limits or Limits(),
        ways=Ways(program=forwarder_program(), out={GATEWAY_PORT: str(GATEWAY_SOCKET)}),
    )


FORWARDER = Path("/opt/forward.py")
"""Where the forwarder is inside: alone, since what it starts may be a stranger's."""


def forwarder_program() -> tuple[str, ...]:
    """Return how the forwarder is run inside."""
    return (str(base_interpreter()), *PYTHON_OPTIONS, str(FORWARDER))


def forwarder_file() -> Path:
    """Return where the forwarder is on this machine."""
    return _find_agent() / "forward.py"


@functools.cache
def _find_agent() -> Path:
    """Return the agent's package, compiled where that is possible: inside, nothing can be written."""
    found = importlib.util.find_spec("proctor_agent")
    if found is None or not found.submodule_search_locations:
        raise Terminal("sandbox: the package proctor_agent is not installed: install proctor again")
    package = Path(found.submodule_search_locations[0]).resolve()
    compileall.compile_dir(package, quiet=2)
    return package
