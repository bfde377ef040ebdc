"""The sandbox of an agent: a Python, the agent, the gateway's socket, and nothing else."""

from __future__ import annotations

import compileall
import functools
import importlib.util
import socket as sockets
from dataclasses import dataclass
from pathlib import Path

from proctor.adapters.sandbox.places import base_interpreter, hidden_places, system_links, system_mounts
from proctor.adapters.sandbox.spec import MIB, SCRATCH, Isolation, Limits, Mount, SandboxSpec, Ways
from proctor.errors import Terminal

AGENT_FOLDER = Path("/opt/agent")
"""Where the builtin agent is inside; the folder says nothing of what it is for."""

GATEWAY_SOCKET = Path("/run/gateway.sock")
GATEWAY_PORT = 8787
"""Where an agent that speaks TCP only finds the gateway, on 127.0.0.1 inside."""

PYTHON_OPTIONS = ("-I", "-S", "-E", "-B")
"""No site, no environment, no user's folder: a fast start, and nothing but the standard library."""

BASIC_ENVIRONMENT = {"HOME": SCRATCH, "TMPDIR": SCRATCH, "LANG": "C.UTF-8"}

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
    package = agent_package()
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
            **BASIC_ENVIRONMENT,
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


LARGE_AGENT_LIMITS = Limits(memory_bytes=2048 * MIB, processes=256, scratch_bytes=256 * MIB, open_files=1024)
"""Of agents that bring an interpreter and libraries of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlace:
    """Where one attempt's agent runs.

    Attributes:
        socket: the attempt's socket at the gateway.
        token: the attempt's token.
        private: what must not be seen inside, wherever it is: data and scenario folders.
        isolation: bubblewrap, or an ordinary process.
        limits: what it may use.
    """

    socket: Path
    token: str
    private: tuple[Path, ...] = ()
    isolation: Isolation = Isolation.BWRAP
    limits: Limits = LARGE_AGENT_LIMITS

    @property
    def sealed(self) -> bool:
        """Whether there is a sandbox."""
        return self.isolation is Isolation.BWRAP

    @property
    def seen_socket(self) -> Path:
        """Where the agent finds the gateway's socket."""
        return GATEWAY_SOCKET if self.sealed else self.socket


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpWay:
    """How an agent that speaks TCP reaches the gateway.

    Attributes:
        address: of the gateway, on the agent's loopback.
        command: what is started: the agent's command, or that within a forwarder.
        ways: for the sandbox; None without one.
    """

    address: str
    command: tuple[str, ...]
    ways: Ways | None

    @classmethod
    def build(cls, place: AgentPlace, command: tuple[str, ...]) -> TcpWay:
        """Return the way: a port of the sandbox's own loopback, or a free one of this machine's."""
        if place.sealed:
            ways = Ways(program=forwarder_program(), out={GATEWAY_PORT: str(GATEWAY_SOCKET)})
            return cls(address=f"http://127.0.0.1:{GATEWAY_PORT}", command=command, ways=ways)
        with sockets.create_server(("127.0.0.1", 0)) as probe:
            port = int(probe.getsockname()[1])
        forwarder = (str(base_interpreter()), *PYTHON_OPTIONS, str(forwarder_file()))
        outer = (*forwarder, "--connect", str(port), str(place.socket), "--", *command)
        return cls(address=f"http://127.0.0.1:{port}", command=outer, ways=None)


FORWARDER = Path("/opt/forward.py")
"""Where the forwarder is inside: alone, since what it starts may be a stranger's."""


def forwarder_program() -> tuple[str, ...]:
    """Return how the forwarder is run inside."""
    return (str(base_interpreter()), *PYTHON_OPTIONS, str(FORWARDER))


def forwarder_file() -> Path:
    """Return where the forwarder is on this machine."""
    return agent_package() / "forward.py"


@functools.cache
def agent_package() -> Path:
    """Return the agent's package, compiled where that is possible: inside, nothing can be written."""
    found = importlib.util.find_spec("proctor_agent")
    if found is None or not found.submodule_search_locations:
        raise Terminal("sandbox: the package proctor_agent is not installed: install proctor again")
    package = Path(found.submodule_search_locations[0]).resolve()
    compileall.compile_dir(package, quiet=2)
    return package
