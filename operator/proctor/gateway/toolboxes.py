"""The servers under test of a run: how each is reached, probed in Preflight, and opened for an attempt."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from proctor.adapters.mcp.channel import Channel, Failed
from proctor.adapters.mcp.connect import open_channel
from proctor.adapters.mcp.dialling import await_listener
from proctor.adapters.mcp.launch import DatasetAccess, HttpAddress, ServerCommand, ServerLauncher
from proctor.adapters.mcp.limits import McpLimits
from proctor.adapters.mcp.target import HttpTarget, StdioTarget, Target, TcpTarget
from proctor.api.fields import SecretKeyRef
from proctor.api.server import EnvVar, Header, HttpTransport, Server
from proctor.bootstrap.engine_watch import see_nothing
from proctor.core.gatewaypolicy.toollist import ToolListing
from proctor.core.gatewaypolicy.tools import ToolPolicy
from proctor.errors import InvalidInput, Terminal
from proctor.gateway.attempt import Attempt
from proctor.gateway.probing import ProbeCall, call_probe
from proctor.gateway.provisioning import HOOK_FIELDS, Provisioned, Provisioning
from proctor.gateway.reference_sql import ReferenceSql, plays_on_reference
from proctor.gateway.shared_servers import SharedServer, SharedServers
from proctor.gateway.toolbox import EngineSight, Toolbox
from proctor.gateway.upstream import Upstream

_PROBES_AT_ONCE = 4
"""Starting a server is all CPU; more at once would only make each look slow to start."""

_MAX_WORDS, _MAX_LOG = 600, 800
"""Characters of a server's own words in an error: enough for its last line, little enough for a status."""


@dataclass(frozen=True, kw_only=True)
class ServersSpec:
    """What the servers of a run need.

    Attributes:
        servers: the suite's servers, by name.
        datasets: where each scenario's dataset is.
        secrets: values by ``name/key``.
        launcher: starts commands.
        limits: bounds on every session.
        search_path: PATH of the servers' commands.
        toolboxes: host and port by server and scenario, where servers run in pods of their own instead of here.
        engine_losses: how often a scenario's engine was not there for what was asked of it, so far.
        look_at_engine: sees now whether it is there, where losses are seen only from beside.
    """

    servers: Mapping[str, Server]
    datasets: Mapping[str, DatasetAccess]
    secrets: Mapping[str, str]
    launcher: ServerLauncher
    limits: McpLimits = field(default_factory=McpLimits)
    search_path: str = os.defpath
    toolboxes: Mapping[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    engine_losses: Callable[[str], int] = lambda _scenario: 0
    look_at_engine: Callable[[str], Awaitable[None]] = see_nothing


class Probed(NamedTuple):
    """What Preflight saw of one server on one scenario.

    Attributes:
        listing: its tools; the error in it is why it can't be used.
        call: the call of one of them, where one was made.
    """

    listing: ToolListing
    call: ProbeCall | None


class Toolboxes:
    """Opens toolboxes for attempts, and keeps the tool lists that Preflight saw."""

    def __init__(self, spec: ServersSpec) -> None:
        self._spec = spec
        self._pinned: dict[tuple[str, str], ToolListing] = {}
        self._shared = SharedServers(spec.launcher, spec.limits)
        self._provisioning = Provisioning(spec.launcher, spec.limits)

    def open(self, attempt: Attempt) -> Toolbox:
        """Return the tools of an attempt, and begin to start its server.

        A control cell of a server without a SQL tool gets the reference server's: its rubric is tried all the same.
        """
        server, scenario = attempt.server, attempt.key.cell.scenario
        if plays_on_reference(attempt.key.cell, server):
            return Toolbox(attempt, self._reference(scenario))
        toolbox = Toolbox(
            attempt,
            self._upstream(server, scenario),
            pinned=self._pinned.get((server.name, scenario)),
            error_field=server.error_field,
            engine=EngineSight(lambda: self._spec.engine_losses(scenario), lambda: self._spec.look_at_engine(scenario)),
        )
        toolbox.prestart()
        return toolbox

    async def probe(self) -> dict[str, Any]:
        """Start every server once for every scenario and pin its tools; the control door's answer.

        A server through which no control cell plays is called too: one that lists tools may still answer nothing.
        """
        pairs = [(server, scenario) for server in self._spec.servers for scenario in self._spec.datasets]
        slots = asyncio.Semaphore(_PROBES_AT_ONCE)

        async def probe(server: str, scenario: str) -> dict[str, Any]:
            async with slots:
                listing, call = await self.probe_one(server, scenario)
            return {
                "server": server,
                "scenario": scenario,
                "tools": list(listing.served_names),
                "digest": listing.digest,
                "called": None if call is None else call.render(),
                "error": listing.error,
            }

        return {"servers": list(await asyncio.gather(*(probe(*pair) for pair in pairs)))}

    async def probe_one(self, server: str, scenario: str) -> Probed:
        """Start one server for one scenario, list its tools, call one where that tells something, and pin the list."""
        spec = self._spec.servers[server]
        upstream = self._upstream(spec, scenario)
        call: ProbeCall | None = None
        seen: list[ToolListing] = []
        upstream.watch(seen.append)
        try:
            failed = await upstream.ready()
            if failed is None and spec.sql_tool is None:
                call = await call_probe(upstream, seen[-1].tools, error_field=spec.error_field)
            problem = _find_problem(failed, call)
            if problem:
                database = self._spec.datasets[scenario].database
                logs = (part.log_tail(server, database) for part in (self._provisioning, self._shared))
                log_tail = upstream.log_tail() or next(filter(None, logs), "")
                return Probed(ToolListing(error=self._explain(server, problem, log_tail)), call)
        finally:
            await upstream.close()
        self._pinned[server, scenario] = seen[-1]
        return Probed(seen[-1], call)

    async def close(self) -> None:
        """End the servers that cells share."""
        await self._shared.close()

    def _explain(self, server: str, problem: str, log_tail: str) -> str:
        passwords = (dataset.password for dataset in self._spec.datasets.values())
        # The longest first: a part of one may be a secret of its own.
        known = {*self._spec.secrets.values(), *passwords, *self._provisioning.secrets}
        secrets = sorted(known, key=len, reverse=True)
        # Cut and cleaned after the secrets are out: half a secret, or one with a sign changed, would be found no more.
        words = redact(problem, secrets)[:_MAX_WORDS]
        text = f"server {server!r}: {''.join(sign if sign.isprintable() else ' ' for sign in words)}"
        last = redact(log_tail, secrets).strip()[-_MAX_LOG:]
        return f"{text}; the last of its log: {last}" if last else text

    def _upstream(self, server: Server, scenario: str) -> Upstream:
        async def connect() -> Channel:
            target = await self._target(server, scenario)
            secrets = [*self._own_secrets(server), *self._provisioning.secrets]
            return await open_channel(target, self._spec.launcher, self._spec.limits, secrets=secrets)

        policy = ToolPolicy.of(server.allowed_tools, server.denied_tools)
        needed = (server.sql_tool.name,) if server.sql_tool is not None else ()
        return Upstream(connect, policy, self._spec.limits, needed=needed)

    def _reference(self, scenario: str) -> Upstream:
        async def connect() -> Channel:
            return ReferenceSql(self._spec.datasets[scenario], self._spec.limits)

        return Upstream(connect, ToolPolicy(), self._spec.limits)

    async def _target(self, server: Server, scenario: str) -> Target:
        elsewhere = self._spec.toolboxes.get((server.name, scenario))
        if server.http is not None:
            return await self._http_target(server, server.http, scenario)
        if elsewhere is not None:
            return TcpTarget(server.name, *elsewhere)
        assert server.stdio is not None  # noqa: S101 - validation admits no server without a transport
        return StdioTarget(self._command(server, server.stdio.command), self._spec.datasets[scenario])

    async def _http_target(self, server: Server, http: HttpTransport, scenario: str) -> HttpTarget:
        headers = {header.name: self._header(server, header) for header in server.headers}
        url = urlsplit(str(http.url)) if http.url is not None else None
        path = http.path if url is None else urlunsplit(("", "", url.path or "/", url.query, ""))
        if url is not None:
            address = HttpAddress(f"{url.scheme}://{url.netloc}")
        else:
            address = await self._http_address(server, http, scenario)
        provisioned = await self._provision(server, scenario, address)
        return HttpTarget(
            server.name, address, provisioned.path or path, provisioned.over(headers), remote=url is not None
        )

    async def _http_address(self, server: Server, http: HttpTransport, scenario: str) -> HttpAddress:
        """Return where a server of ours listens; it is started if that is for us to do."""
        elsewhere = self._spec.toolboxes.get((server.name, scenario))
        if elsewhere is not None:
            return await self._address_elsewhere(server, *elsewhere)
        if http.command is None or http.port is None:
            raise InvalidInput(f"server {server.name!r}: on one machine http needs a url, or a command and a port")
        command = self._command(server, http.command)
        return await self._shared.address(SharedServer(command, self._spec.datasets[scenario], http.port, http.path))

    async def _address_elsewhere(self, server: Server, host: str, port: int) -> HttpAddress:
        """Return where a server in a pod of its own listens, once it does: the pod may still be starting."""
        try:
            await await_listener(host, port, seconds=self._spec.limits.start_seconds)
        except TimeoutError as error:
            raise Terminal(f"server {server.name!r}: nothing answers at {host}:{port}") from error
        return HttpAddress(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")

    async def _provision(self, server: Server, scenario: str, address: HttpAddress) -> Provisioned:
        if server.provision is None:
            return Provisioned()
        dataset = self._spec.datasets[scenario]
        hook = self._command(server, server.provision.command, fields=HOOK_FIELDS)
        starts = self._shared.starts(server.name, dataset.database)
        return await self._provisioning.prepare(hook, dataset, address, starts=starts)

    def _command(
        self, server: Server, command: tuple[str, ...], *, fields: Mapping[str, str] | None = None
    ) -> ServerCommand:
        named = {item.name: item.dataset.value for item in server.env if item.dataset is not None}
        return ServerCommand(
            server=server.name,
            command=tuple(command),
            values={item.name: self._value(server, item) for item in server.env if item.dataset is None},
            dataset_fields={**named, **(fields or {})},
            search_path=self._spec.search_path,
        )

    def _own_secrets(self, server: Server) -> Iterator[str]:
        items: tuple[EnvVar | Header, ...] = (*server.env, *server.headers)
        for item in items:
            # Of a server that runs in a pod of its own, only that pod may have them.
            if item.secret_key_ref is not None and _key_of(item.secret_key_ref) in self._spec.secrets:
                value = self._value(server, item)
                yield from (value, *value.split())

    def _header(self, server: Server, header: Header) -> str:
        value = self._value(server, header)
        if not value.isprintable() or value != value.strip():
            raise InvalidInput(f"server {server.name!r}: header {header.name}: its value has signs that HTTP forbids")
        return value

    def _value(self, server: Server, item: EnvVar | Header) -> str:
        if item.secret_key_ref is None:
            return item.value or ""
        key = _key_of(item.secret_key_ref)
        if key not in self._spec.secrets:
            raise InvalidInput(f"server {server.name!r}: {item.name} refers to secret {key}, which is not given")
        return self._spec.secrets[key]


def _key_of(ref: SecretKeyRef) -> str:
    return f"{ref.name}/{ref.key}"


def _find_problem(failed: Failed | None, call: ProbeCall | None) -> str:
    if failed is not None:
        return failed.detail
    return call.problem if call is not None else ""


def redact(text: str, secrets: Iterable[str]) -> str:
    """Take secret values out of a text for people."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "•••")
    return text
