"""What a gateway is told when it starts: one JSON object on standard input, so that no secret is ever on disk."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StrictInt,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from proctor.api.fields import Instant
from proctor.api.suite import EvalSuiteSpec
from proctor.errors import InvalidInput

_Text = Annotated[str, StringConstraints(min_length=1, max_length=512)]
_Port = Annotated[StrictInt, Field(ge=0, le=65_535)]
_HOST = re.compile(r"^[A-Za-z0-9.\-\[\]:]{1,253}$")

DEFAULT_ALLOWED_HOSTS = ("api.anthropic.com",)


class _Section(BaseModel):
    """Closed and immutable; camelCase or snake_case, as the writer likes. Input never shows up in an error."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True, hide_input_in_errors=True
    )


class SandboxMode(StrEnum):
    """How commands of servers under test are run."""

    BWRAP = "bwrap"
    NONE = "none"
    ELSEWHERE = "elsewhere"
    """They run in pods of their own; this process starts nothing."""


class DatasetLogin(_Section):
    """Where servers under test find a dataset, as its restricted user."""

    host: _Text
    port: _Port
    user: _Text
    password: SecretStr
    database: _Text
    secure: bool = False


class ScenarioParts(_Section):
    """What the gateway holds of a scenario: the agent's side, the scripted policies, the dataset.

    Attributes:
        brief: brief.yaml, parsed.
        policies: policies.yaml, parsed; empty if no cell is scripted.
        dataset: where servers under test find it.
    """

    brief: dict[str, Any]
    dataset: DatasetLogin
    policies: dict[str, Any] = Field(default_factory=dict)


class StoreLogin(_Section):
    """The results store."""

    host: _Text
    port: _Port
    user: _Text
    password: SecretStr
    database: _Text = "proctor"
    secure: bool = False


class RetryCaps(_Section):
    """How long an overloaded provider is waited for.

    Attributes:
        wait_seconds: per attempt, in all; past it the attempt is an infrastructure error.
        pause_seconds: longest pause between two tries when the provider names none.
        idle_seconds: how long a connection may stay silent before it counts as cut.
    """

    wait_seconds: Annotated[StrictInt, Field(ge=0, le=21_600)] = 600
    pause_seconds: Annotated[StrictInt, Field(ge=1, le=600)] = 30
    idle_seconds: Annotated[StrictInt, Field(ge=1, le=3_600)] = 300


class TcpListen(_Section):
    """A TCP port, for where an attempt has an address of its own."""

    host: _Text
    port: _Port


class ToolboxAddress(_Section):
    """Where a server under test, or its hook, listens for the cells of one scenario."""

    server: _Text
    scenario: _Text
    host: _Text
    port: _Port


class GatewayConfig(_Section):
    """All that a gateway needs.

    Attributes:
        run: the EvalRun's uid.
        suite: the frozen suite.
        anchor: the run's anchor time; needed where the suite has only a policy for it.
        run_key: signs cell tokens; at least 32 characters.
        operator_token: opens the control doors; at least 32 characters.
        scenarios: by name, for every scenario of the suite.
        secrets: values by ``name/key``.
        store: None keeps no record; for trying a suite's servers out.
        spool_dir: where the record waits while the store is away.
        sockets_dir: a folder of the gateway's own, with a short path.
        listen: a TCP port beside the sockets.
        sandbox: how commands of servers under test are run.
        toolboxes: where servers run that this process does not start.
        hooks: where the hooks of such servers run.
        private_dirs: folders that servers under test must not see: data, scenarios.
        allowed_hosts: hosts to which models' requests may go, as ``host`` or ``host:port``.
        retry: how long an overloaded provider is waited for.
        host_names: further names by which the gateway may be called.
    """

    run: _Text
    suite: EvalSuiteSpec
    anchor: Instant | None = None
    run_key: SecretStr
    operator_token: SecretStr
    scenarios: dict[str, ScenarioParts]
    secrets: dict[str, SecretStr] = Field(default_factory=dict)
    store: StoreLogin | None = None
    spool_dir: Path
    sockets_dir: Path
    listen: TcpListen | None = None
    sandbox: SandboxMode = SandboxMode.BWRAP
    toolboxes: tuple[ToolboxAddress, ...] = ()
    hooks: tuple[ToolboxAddress, ...] = ()
    private_dirs: tuple[Path, ...] = ()
    allowed_hosts: tuple[str, ...] = DEFAULT_ALLOWED_HOSTS
    retry: RetryCaps = RetryCaps()
    host_names: tuple[str, ...] = ()

    def _check_toolboxes(self) -> None:
        servers, scenarios = self.suite.servers, [scenario.name for scenario in self.suite.scenarios]
        ours = [server.name for server in servers if server.http is None or server.http.url is None]
        prepared = [server.name for server in servers if server.provision is not None]
        for field, addresses, needed in (("toolboxes", self.toolboxes, ours), ("hooks", self.hooks, prepared)):
            known = {(address.server, address.scenario) for address in addresses}
            for server, scenario in product(needed, scenarios):
                if (server, scenario) not in known:
                    raise ValueError(f"{field}: server {server} has none for scenario {scenario}")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, secret in (("runKey", self.run_key), ("operatorToken", self.operator_token)):
            if len(secret.get_secret_value()) < 32:  # noqa: PLR2004 - 128 bits as hex
                raise ValueError(f"{name} has fewer than 32 characters: draw it from a random source")
        if self.anchor is None and self.suite.anchor is None:
            raise ValueError("anchor: the suite fixes none, so the run's is needed")
        missing = {scenario.name for scenario in self.suite.scenarios} - set(self.scenarios)
        if missing:
            raise ValueError(f"scenarios: {', '.join(sorted(missing))} of the suite is missing: give its brief")
        if self.sandbox is SandboxMode.ELSEWHERE:
            self._check_toolboxes()
        odd = [host for host in (*self.allowed_hosts, *self.host_names) if not _HOST.match(host)]
        if odd:
            raise ValueError(f"{odd[0]!r} is no host name: write host or host:port")
        return self


def parse_gateway_config(line: bytes) -> GatewayConfig:
    """Read the configuration.

    Raises:
        InvalidInput: a field is missing or wrong; the message names it, and never its value.
    """
    with _naming_fields():
        return GatewayConfig.model_validate_json(line)


def check_gateway_config(values: Mapping[str, Any]) -> GatewayConfig:
    """Make a configuration from its parts.

    Raises:
        InvalidInput: as `parse_gateway_config`.
    """
    with _naming_fields():
        return GatewayConfig.model_validate(values)


@contextmanager
def _naming_fields() -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        problems = (
            f"{'.'.join(str(part) for part in problem['loc']) or 'configuration'}: {problem['msg']}"
            for problem in error.errors(include_input=False, include_url=False, include_context=False)
        )
        raise InvalidInput("the gateway's configuration: " + "; ".join(problems)) from None
