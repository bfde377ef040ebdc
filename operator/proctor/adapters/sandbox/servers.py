"""The sandbox of an MCP server under test: a stranger's code, with what it needs to run and a way to its dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from proctor.adapters.sandbox.agents import FORWARDER, forwarder_file, forwarder_program
from proctor.adapters.sandbox.commands import find_program, inner_path, program_mounts
from proctor.adapters.sandbox.places import hidden_places, system_links, system_mounts
from proctor.adapters.sandbox.spec import MIB, SCRATCH, Limits, Mount, SandboxSpec, Ways
from proctor.errors import InvalidInput

DATASET_SOCKET = Path("/run/dataset.sock")
DATASET_HOST = "127.0.0.1"
DATASET_PORT = 8123
"""Where the dataset's engine is for a server: on its own loopback, where nothing else answers."""

_NEIGHBOUR_SOCKET = Path("/run/server.sock")
_NAMES_FILE = Path("/etc/hosts")

SERVER_LIMITS = Limits(memory_bytes=2048 * MIB, processes=256, scratch_bytes=256 * MIB, open_files=1024)
"""Servers hold results and run thread pools; agents hold a conversation."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A server that a program in the sandbox may reach.

    Attributes:
        port: where it is inside, on the loopback; one on which anybody may listen.
        socket: the Unix socket that leads to it.
        names: a file like /etc/hosts, by which its own name means the loopback.
    """

    port: int
    socket: Path
    names: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRequest:
    """A server to be started.

    Attributes:
        command: program and arguments, as the suite has them.
        environment: its variables, secrets included; PATH is made, not passed.
        search_path: where its program and interpreters are looked for.
        dataset: the Unix socket that leads to its dataset's engine; None for a server without one.
        inward: a port on which it listens, and the Unix socket through which that is reached from here.
        neighbour: the server that it prepares, where it is the hook of one.
        private: what must not be seen inside, wherever it is: data and scenario folders.
        limits: what it may use.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    search_path: str
    dataset: Path | None = None
    inward: Mapping[int, Path] = field(default_factory=dict)
    neighbour: Neighbour | None = None
    private: tuple[Path, ...] = ()
    limits: Limits = SERVER_LIMITS


def server_spec(request: ServerRequest) -> SandboxSpec:
    """Return the sandbox of a server: its environment and interpreter, read-only, without anything of Proctor's.

    Raises:
        InvalidInput: the program or its interpreter can't be found, or is where nothing may be shown.
    """
    if not request.command:
        raise InvalidInput("server: its command is empty")
    private = tuple(path.resolve() for path in request.private)
    program = find_program(request.command[0], request.search_path)
    system = system_mounts()
    added = program_mounts(request.command, program, search_path=request.search_path, private=private, seen=system)
    shown = (*system, *added)
    sockets = _sockets(request)
    return SandboxSpec(
        command=(str(program), *request.command[1:]),
        environment={
            "HOME": SCRATCH,
            "TMPDIR": SCRATCH,
            "LANG": "C.UTF-8",
            **request.environment,
            "PATH": inner_path(request.search_path, program, shown),
        },
        mounts=(*shown, Mount(forwarder_file(), FORWARDER), *sockets.values(), *_names(request)),
        links=system_links(),
        hidden=hidden_places(shown, private),
        limits=request.limits,
        ways=Ways(
            program=forwarder_program(),
            out={port: str(socket.target) for port, socket in sockets.items()},
            inward=request.inward,
        ),
    )


def _sockets(request: ServerRequest) -> dict[int, Mount]:
    """Return the sockets that lead out, by the port inside."""
    found: dict[int, Mount] = {}
    if request.dataset is not None:
        found[DATASET_PORT] = Mount(request.dataset.resolve(), DATASET_SOCKET)
    if request.neighbour is not None:
        found[request.neighbour.port] = Mount(request.neighbour.socket.resolve(), _NEIGHBOUR_SOCKET)
    return found


def _names(request: ServerRequest) -> tuple[Mount, ...]:
    return () if request.neighbour is None else (Mount(request.neighbour.names.resolve(), _NAMES_FILE),)
