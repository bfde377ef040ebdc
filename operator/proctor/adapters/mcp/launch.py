"""Starting the command of a server under test: the port that a sandbox fills, and a plain process for tests."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from proctor.adapters.mcp.limits import McpLimits
from proctor.errors import Terminal

LOG_TAIL_BYTES = 16 * 1024
"""Enough for a Python traceback, which is what a server that doesn't start leaves behind."""

SERVER_URL = "PROCTOR_SERVER_URL"
"""Tells a hook where the server that it prepares can be reached from where the hook runs: scheme, host and port."""

_READ_BYTES = 64 * 1024
_REAP_SECONDS = 2.0
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class DatasetAccess:
    """Where a server finds its dataset, as its restricted user."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    database: str
    secure: bool = False


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """What to run.

    Attributes:
        server: the server's name in the suite, for messages.
        command: program and arguments; no shell.
        values: variables whose value is known, secrets included.
        dataset_fields: variables that take a field of `DatasetAccess`, by that field's name.
        search_path: the PATH on which the program is found and that it gets; nothing else is inherited.
    """

    server: str
    command: tuple[str, ...]
    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    dataset_fields: Mapping[str, str] = field(default_factory=dict)
    search_path: str = os.defpath

    def environment(self, dataset: DatasetAccess) -> dict[str, str]:
        """Return the whole environment of the process, for the dataset as the process will see it."""
        known = {name: str(getattr(dataset, of)) for name, of in self.dataset_fields.items()}
        return {"PATH": self.search_path, **self.values, **known}


class LaunchedServer(Protocol):
    """A running server and its standard streams."""

    @property
    def reader(self) -> asyncio.StreamReader:
        """Its standard output."""
        ...

    @property
    def writer(self) -> asyncio.StreamWriter:
        """Its standard input."""
        ...

    async def terminate(self) -> None:
        """End it and everything that it started; may be called twice."""
        ...

    def exit_code(self) -> int | None:
        """Return its exit code, negative for a signal; None while it runs."""
        ...

    def log_tail(self) -> str:
        """Return the end of its standard error."""
        ...


@dataclass(frozen=True, slots=True)
class HttpAddress:
    """Where a started HTTP server listens.

    Attributes:
        base_url: scheme, host and port.
        socket: a Unix socket that leads there, where the server has no network of its own.
    """

    base_url: str
    socket: str | None = None


class ServerLauncher(Protocol):
    """Starts commands of servers under test."""

    async def launch(self, command: ServerCommand, dataset: DatasetAccess, *, line_bytes: int) -> LaunchedServer:
        """Start a server that speaks on its standard streams.

        Args:
            command: what to run.
            dataset: the dataset that the server is pointed at.
            line_bytes: limit of the reader's buffer.

        Raises:
            Terminal: the command could not be run.
        """
        ...

    async def launch_http(
        self, command: ServerCommand, dataset: DatasetAccess, *, port: int
    ) -> tuple[LaunchedServer, HttpAddress]:
        """Start a server that listens on a port.

        Raises:
            Terminal: the command could not be run.
        """
        ...

    def launch_hook(
        self, command: ServerCommand, dataset: DatasetAccess, server: HttpAddress
    ) -> AbstractAsyncContextManager[tuple[LaunchedServer, str]]:
        """Run a program that prepares a server, beside that server; it is ended on leaving.

        It comes with the address of the server that it was told.

        Args:
            command: what to run; `PROCTOR_SERVER_URL` is added to its environment.
            dataset: the dataset that the server is prepared for.
            server: where the server listens; nothing else but the dataset can be reached.

        Raises:
            Terminal: the command could not be run.
        """
        ...


class LogTail:
    """The last bytes of a stream of any length."""

    def __init__(self, limit: int = LOG_TAIL_BYTES) -> None:
        self._limit = limit
        self._kept = bytearray()

    async def follow(self, stream: asyncio.StreamReader) -> None:
        """Read to the end, keeping only the tail."""
        while chunk := await stream.read(_READ_BYTES):
            self._kept += chunk
            del self._kept[: -self._limit]

    def text(self) -> str:
        """Return what is kept, with everything but printable text and line ends taken out."""
        text = bytes(self._kept).decode("utf-8", "replace")
        return "".join(sign for sign in text if sign.isprintable() or sign in "\n\t")


class PlainProcess:
    """A server that runs as an ordinary process in a group of its own."""

    def __init__(self, process: asyncio.subprocess.Process, limits: McpLimits) -> None:
        self._process = process
        self._limits = limits
        self._log = LogTail()
        self._ended = False
        assert process.stdout is not None  # noqa: S101 - opened with pipes below
        assert process.stdin is not None  # noqa: S101 - as above
        assert process.stderr is not None  # noqa: S101 - as above
        self.reader = process.stdout
        self.writer = process.stdin
        self._following = asyncio.create_task(self._log.follow(process.stderr))

    def exit_code(self) -> int | None:
        """Return its exit code; None while it runs."""
        return self._process.returncode

    def log_tail(self) -> str:
        """Return the end of its standard error."""
        return self._log.text()

    async def terminate(self) -> None:
        """End its group: standard input closed and TERM, then KILL for whatever is left."""
        if self._ended:
            return
        self._ended = True
        self.writer.close()
        self._signal_group(signal.SIGTERM)
        # Not only for its exit: asyncio waits for the ends of its pipes too, which a stray child may hold open.
        waiting = asyncio.ensure_future(self._process.wait())
        try:
            await asyncio.wait({waiting}, timeout=self._limits.stop_seconds)
        finally:
            # Also after an orderly end: children that ignored TERM are still in the group.
            self._signal_group(signal.SIGKILL)
            await asyncio.wait({waiting}, timeout=_REAP_SECONDS)
            # A child that left the group lives on without a sandbox; at least it holds nothing of ours.
            self._process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - asyncio has no other way
            self._following.cancel()
            waiting.cancel()

    def _signal_group(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return


class PlainLauncher:
    """Starts servers as ordinary processes: for tests, and where cells are not isolated (`--sandbox=none`)."""

    def __init__(self, limits: McpLimits | None = None) -> None:
        self._limits = limits or McpLimits()
        self._libc = ctypes.CDLL(None, use_errno=True)

    async def launch(self, command: ServerCommand, dataset: DatasetAccess, *, line_bytes: int) -> PlainProcess:
        """Start a server that speaks on its standard streams.

        Raises:
            Terminal: the command could not be run.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                *command.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=command.environment(dataset),
                cwd="/",
                limit=line_bytes,
                start_new_session=True,
                preexec_fn=self._die_with_parent,
            )
        except OSError as e:
            raise Terminal(f"server {command.server!r}: cannot run {command.command[0]!r}: {e.strerror}") from e
        return PlainProcess(process, self._limits)

    async def launch_http(
        self, command: ServerCommand, dataset: DatasetAccess, *, port: int
    ) -> tuple[PlainProcess, HttpAddress]:
        """Start a server that listens on a port of this machine.

        Raises:
            Terminal: the command could not be run.
        """
        process = await self.launch(command, dataset, line_bytes=_READ_BYTES)
        return process, HttpAddress(f"http://127.0.0.1:{port}")

    @asynccontextmanager
    async def launch_hook(
        self, command: ServerCommand, dataset: DatasetAccess, server: HttpAddress
    ) -> AsyncIterator[tuple[PlainProcess, str]]:
        """Run a program that prepares a server; it is ended on leaving.

        Raises:
            Terminal: the command could not be run.
        """
        values = {**command.values, SERVER_URL: server.base_url}
        process = await self.launch(replace(command, values=values), dataset, line_bytes=_READ_BYTES)
        try:
            yield process, server.base_url
        finally:
            await process.terminate()

    def _die_with_parent(self) -> None:
        self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
