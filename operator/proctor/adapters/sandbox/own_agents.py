"""The sandbox of an agent of one's own: its command, its files read-only, and the gateway on its loopback."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from proctor.adapters.sandbox.agents import (
    BASIC_ENVIRONMENT,
    FORWARDER,
    GATEWAY_SOCKET,
    AgentPlace,
    TcpWay,
    forwarder_file,
)
from proctor.adapters.sandbox.commands import find_program, inner_path, program_mounts
from proctor.adapters.sandbox.places import hidden_places, system_links, system_mounts
from proctor.adapters.sandbox.spec import Mount, SandboxSpec
from proctor.errors import InvalidInput

_BESIDE = ("./", "../")
"""How a word of a command begins that is a path from the suite's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnAgent:
    """An agent's command.

    Attributes:
        command: program and arguments, as the suite has them.
        environment: its variables, as the suite has them.
        folder: from where paths that begin with ``./`` or ``../`` lead: the suite's own folder.
        search_path: where its program and interpreters are looked for.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path
    search_path: str


def own_agent_spec(agent: OwnAgent, place: AgentPlace) -> SandboxSpec:
    """Return the sandbox of an agent of one's own for one attempt.

    Raises:
        InvalidInput: its program, interpreter or files can't be found, or are where nothing may be shown.
    """
    words = tuple(_resolve(word, agent.folder) for word in agent.command)
    program = find_program(words[0], agent.search_path)
    private = tuple(path.resolve() for path in place.private)
    system = system_mounts()
    added = program_mounts(words, program, search_path=agent.search_path, private=private, seen=system)
    shown = (*system, *added)
    way = TcpWay.build(place, (str(program), *words[1:]))
    path = inner_path(agent.search_path, program, shown) if place.sealed else agent.search_path
    return SandboxSpec(
        command=way.command,
        environment={
            **BASIC_ENVIRONMENT,
            "PATH": path,
            **agent.environment,
            "PROCTOR_GATEWAY": way.address,
            "PROCTOR_SOCKET": str(place.seen_socket),
            "PROCTOR_TOKEN": place.token,
            "ANTHROPIC_BASE_URL": way.address,
            "ANTHROPIC_API_KEY": place.token,
        },
        mounts=(*shown, Mount(forwarder_file(), FORWARDER), Mount(place.socket.resolve(), GATEWAY_SOCKET)),
        links=system_links(),
        hidden=hidden_places(shown, private),
        limits=place.limits,
        ways=way.ways,
        isolation=place.isolation,
    )


def _resolve(word: str, folder: Path) -> str:
    """Make a path from the suite's folder absolute; any other word stays as it is."""
    if not word.startswith(_BESIDE):
        return word
    path = Path(os.path.normpath(folder / word))
    if not path.exists():
        raise InvalidInput(f"agent command: {word!r}: there is no {path}")
    return str(path)
