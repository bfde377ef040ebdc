"""Where a server under test is: what to start, or where to knock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from proctor.adapters.mcp.launch import DatasetAccess, HttpAddress, ServerCommand


@dataclass(frozen=True, slots=True)
class StdioTarget:
    """A command that speaks on its standard streams; each channel is a fresh process."""

    command: ServerCommand
    dataset: DatasetAccess


@dataclass(frozen=True, slots=True)
class TcpTarget:
    """A port where each connection is one server that speaks JSON-RPC lines."""

    server: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """An endpoint of MCP's streamable HTTP.

    Attributes:
        server: the server's name in the suite, for messages.
        address: where it listens.
        path: the endpoint's path, with its query.
        headers: sent with every request; may hold secrets.
        remote: it runs elsewhere, so that not reaching it says nothing about it.
    """

    server: str
    address: HttpAddress
    path: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    remote: bool = False


Target: TypeAlias = StdioTarget | TcpTarget | HttpTarget
