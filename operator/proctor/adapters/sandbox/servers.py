"""The sandbox of an MCP server under test: a stranger's code, with what it needs to run and a way to its dataset."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from proctor.adapters.sandbox.agents import FORWARDER, forwarder_file, forwarder_program
from proctor.adapters.sandbox.commands import find_program, program_mounts
from proctor.adapters.sandbox.places import hidden_places, is_visible, system_links, system_mounts
from proctor.adapters.sandbox.spec import MIB, SCRATCH, Limits, Mount, SandboxSpec, Ways
from proctor.errors import InvalidInput

DATASET_SOCKET = Path("/run/dataset.sock")
DATASET_HOST = "127.0.0.1"
DATASET_PORT = 8123
"""Where the dataset's engine is for a server: on its own loopback, where nothing else answers."""

SERVER_LIMITS = Limits(memory_bytes=2048 * MIB, processes=256, scratch_bytes=256 * MIB, open_files=1024)
"""Servers hold results and run thread pools; agents hold a conversation."""

_SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRequest:
    """A server to be started.

    Attributes:
        command: program and arguments, as the suite has them.
        environment: its variables, secrets included; PATH is made, not passed.
        search_path: where its program and interpreters are looked for.
        dataset: the Unix socket that leads to its dataset's engine; None for a server without one.
        inward: a port on which it listens, and the Unix socket through which that is reached from here.
        private: what must not be seen inside, wherever it is: data and scenario folders.
        limits: what it may use.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    search_path: str
    dataset: Path | None = None
    inward: Mapping[int, Path] = field(default_factory=dict)
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
    sockets = () if request.dataset is None else (Mount(request.dataset.resolve(), DATASET_SOCKET),)
    return SandboxSpec(
        command=(str(program), *request.command[1:]),
        environment={
            "HOME": SCRATCH,
            "TMPDIR": SCRATCH,
            "LANG": "C.UTF-8",
            **request.environment,
            "PATH": _inner_path(request.search_path, program, shown),
        },
        mounts=(*shown, Mount(forwarder_file(), FORWARDER), *sockets),
        links=system_links(),
        hidden=hidden_places(shown, private),
        limits=request.limits,
        ways=Ways(
            program=forwarder_program(),
            out={DATASET_PORT: str(DATASET_SOCKET)} if sockets else {},
            inward=request.inward,
        ),
    )


def _inner_path(search_path: str, program: Path, shown: Iterable[Mount]) -> str:
    shown = tuple(shown)
    folders = [str(program.parent), *search_path.split(os.pathsep), *_SYSTEM_PATH]
    return os.pathsep.join(dict.fromkeys(folder for folder in folders if folder and is_visible(Path(folder), shown)))
