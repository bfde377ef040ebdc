"""`provision`: a suite's program that prepares a server for a dataset: accounts, connections, sources.

It is a stranger's code like the server, and runs in a sandbox like the server's. What it prints decides where requests
go and with what credential, so it is read by a closed schema, and may only choose a path of the server's own address.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import SplitResult, urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from proctor.adapters.mcp.connect import explain_exit
from proctor.adapters.mcp.jsonrpc import InvalidMessage, parse_json
from proctor.adapters.mcp.launch import DatasetAccess, HttpAddress, LaunchedServer, ServerCommand, ServerLauncher
from proctor.adapters.mcp.limits import McpLimits
from proctor.adapters.wire import DEFAULT_PORTS
from proctor.api.fields import HeaderName
from proctor.api.server import PROTOCOL_HEADERS, DatasetField
from proctor.errors import Terminal

HOOK_FIELDS = {f"PROCTOR_DATASET_{field_.name}": field_.value for field_ in DatasetField}
"""What a hook learns about the dataset, by variable."""

_MAX_LINE = 64 * 1024
_MAX_HEADERS = 32
_READ_BYTES = 64 * 1024
_LOOK_SECONDS = 0.2
_LEAST_SECRET = 8
"""Shorter words of a header, such as `Bearer`, are no secrets, and to take them out would spoil every message."""

# Tokens are longer than what people write into a suite; signs that HTTP forbids would break the framing.
_Value = Annotated[str, StringConstraints(strict=True, pattern=r"^[!-~]([ -~]*[!-~])?$", max_length=8192)]
_Url = Annotated[
    str, StringConstraints(strict=True, pattern=r"^https?://[A-Za-z0-9.:\[\]-]+(/[!-~]*)?$", max_length=2048)
]


class _Printed(BaseModel):
    """A hook's last line."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: _Url | None = None
    headers: dict[HeaderName, _Value] = Field(default_factory=dict, max_length=_MAX_HEADERS)


@dataclass(frozen=True, slots=True)
class Provisioned:
    """How a prepared server is spoken to.

    Attributes:
        path: of its endpoint, with the query; None for the suite's own.
        headers: sent with every request; secrets.
    """

    path: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def over(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the suite's headers and these, of which each replaces the suite's of the same name."""
        names = {name.lower() for name in self.headers}
        return {name: value for name, value in headers.items() if name.lower() not in names} | dict(self.headers)


class Provisioning:
    """Runs each hook once per server and dataset, and again only for a server that was started again."""

    def __init__(self, launcher: ServerLauncher, limits: McpLimits) -> None:
        self._launcher = launcher
        self._limits = limits
        self._done: dict[tuple[str, str], tuple[int, Provisioned]] = {}
        self._last_words: dict[tuple[str, str], str] = {}
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}
        self._secrets: set[str] = set()

    @property
    def secrets(self) -> frozenset[str]:
        """All that hooks printed as values of headers: never to be shown."""
        return frozenset(self._secrets)

    def log_tail(self, server: str, database: str) -> str:
        """Return the end of a failed hook's standard error, for people; empty if it did not fail."""
        return self._last_words.get((server, database), "")

    async def prepare(
        self, hook: ServerCommand, dataset: DatasetAccess, server: HttpAddress, *, starts: int = 0
    ) -> Provisioned:
        """Return how a server is spoken to once it is prepared for a dataset.

        Args:
            hook: what to run.
            dataset: the dataset.
            server: where the server listens.
            starts: how often the server was started so far; after another start it is prepared again.

        Raises:
            Terminal: the hook failed, hung, printed too much, or printed what it should not; names the server.
            Retryable: its sandbox could not be made.
            InvalidInput: its program can't be found.
        """
        key = (hook.server, dataset.database)
        async with self._locks.setdefault(key, asyncio.Lock()):
            done = self._done.get(key)
            if done is None or done[0] != starts:
                done = (starts, await self._run(hook, dataset, server))
                self._done[key] = done
            return done[1]

    async def _run(self, command: ServerCommand, dataset: DatasetAccess, server: HttpAddress) -> Provisioned:
        key = (command.server, dataset.database)
        self._last_words.pop(key, None)
        async with self._launcher.launch_hook(command, dataset, server) as (hook, url):
            try:
                line = await self._read(hook)
                return parse_printed(line, addresses=(server.base_url, url))
            except HookError as e:
                self._last_words[key] = hook.log_tail()
                raise Terminal(f"server {command.server!r}: its provision hook {e}") from None

    async def _read(self, hook: LaunchedServer) -> bytes:
        """Return the last line of a hook that ended well."""
        hook.writer.write_eof()
        printed = bytearray()
        try:
            async with asyncio.timeout(self._limits.hook_seconds):
                while piece := await _next_piece(hook):
                    printed += piece
                    if len(printed) > self._limits.hook_bytes:
                        raise HookError(f"printed more than {self._limits.hook_bytes} bytes")
                while hook.exit_code() is None:  # noqa: ASYNC110 - one may say no more long before it ends
                    await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError as e:
            raise HookError(f"did not end within {self._limits.hook_seconds:g} s") from e
        line = bytes(printed).strip().rpartition(b"\n")[2].strip()
        # Before its exit is looked at: one that fails after it printed has told a secret all the same.
        self._secrets |= find_secrets(line)
        if hook.exit_code() != 0:
            raise HookError(f"failed: {await explain_exit(hook, who='it')}")
        return line


async def _next_piece(hook: LaunchedServer) -> bytes:
    """Return what a hook prints next; nothing once it has ended, even if a child of its holds its output open."""
    while True:
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                return await hook.reader.read(_READ_BYTES)
        except TimeoutError:
            if hook.exit_code() is not None:
                return b""


class HookError(Exception):
    """What a hook did wrong; holds nothing that it printed."""


def parse_printed(line: bytes, *, addresses: Sequence[str]) -> Provisioned:
    """Read a hook's last line.

    Args:
        line: the line.
        addresses: scheme, host and port of the server, as it is called here and as it is called inside.

    Raises:
        HookError: it is not what it should be.
    """
    if len(line) > _MAX_LINE:
        raise HookError(f"printed a last line of more than {_MAX_LINE} bytes")
    try:
        printed = _Printed.model_validate_json(line)
    except ValidationError as e:
        first = e.errors(include_input=False, include_url=False, include_context=False)[0]
        where = "".join(f"{part}: " for part in first["loc"][:2])
        raise HookError(
            f'printed as its last line what is not {{"url": …, "headers": {{…}}}}: {where}{first["msg"]}'
        ) from None
    clash = [name for name in printed.headers if name.lower() in PROTOCOL_HEADERS]
    if clash:
        raise HookError(f"printed header {clash[0]!r}, which belongs to the protocol")
    names = [name.lower() for name in printed.headers]
    if len(set(names)) != len(names):
        raise HookError("printed a header twice, in different case")
    if printed.url is None:
        return Provisioned(headers=printed.headers)
    url = urlsplit(printed.url)
    if _origin(url) not in [_origin(urlsplit(address)) for address in addresses]:
        raise HookError("printed a url of another scheme, host or port than its server's")
    return Provisioned(urlunsplit(("", "", url.path or "/", url.query, "")), printed.headers)


def find_secrets(line: bytes) -> set[str]:
    """Return every word of every header in a line, whatever else is wrong with it."""
    try:
        printed = parse_json(line)
    except InvalidMessage:
        return set()
    headers = printed.get("headers") if isinstance(printed, dict) else None
    values = headers.values() if isinstance(headers, dict) else ()
    texts = [value for value in values if isinstance(value, str)]
    words = {word for text in texts for word in (text, *text.split())}
    return {word for word in words if len(word) >= _LEAST_SECRET}


def _origin(url: SplitResult) -> tuple[str, str | None, int | None]:
    try:
        port = url.port
    except ValueError:
        port = -1
    return url.scheme, url.hostname, port or DEFAULT_PORTS.get(url.scheme)
