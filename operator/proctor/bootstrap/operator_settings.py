"""What the operator is told when it starts: one closed file, and the master key beside it."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field, StrictInt, StringConstraints, ValidationError, field_validator

from proctor.api.fields import Closed, Flag, Image, LabelKey, LabelValue, Name, ObjectName
from proctor.api.suite import Resources, Toleration
from proctor.core.seeding.share import MAX_PARTS
from proctor.errors import InvalidInput

MAX_BYTES = 256 * 1024
MASTER_KEY_BYTES = 32

_HOST = re.compile(r"^[A-Za-z0-9.\-\[\]:]{1,253}$")
_TARGET = re.compile(r"^[A-Za-z0-9.\-\[\]:]{1,253}:[0-9]{1,5}$")

Port = Annotated[StrictInt, Field(ge=1, le=65_535)]
Host = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.\-]{1,253}$")]
_Url = Annotated[str, StringConstraints(pattern=r"^[a-z]+://[\x21-\x7e]{1,500}$")]


class OwnImages(Closed):
    """Proctor's own images, each by digest."""

    operator: Image = Field(description="Gateway, seeding and grading.")
    sandbox: Image = Field(description="Builtin agent and canary.")
    claude_code: Image | None = Field(
        default=None, description="Sandbox with Claude Code; absent: no suite may use it."
    )


class ClickHouseKind(StrEnum):
    """Whose ClickHouse it is."""

    EMBEDDED = "Embedded"  # the chart's own, for trying out: one engine per dataset
    SERVER = "Server"  # the user's: one SQL user per dataset


class ClickHouse(Closed):
    """Where results and datasets are kept."""

    kind: ClickHouseKind = Field(default=ClickHouseKind.EMBEDDED, description="Whose it is.")
    host: Host = Field(description="Name of a Service, as NAME.NAMESPACE.svc, or an address.")
    port: Port = Field(default=8123, description="HTTP port of the results store.")
    control_port: Port = Field(default=8124, description="Control port of the embedded one.")
    secret_name: ObjectName = Field(
        default="proctor-clickhouse", description="Secret in a run's namespace with user and password."
    )
    secure: Flag = Field(default=False, description="TLS.")
    seed_workers: Annotated[int, Field(ge=1, le=MAX_PARTS)] = Field(
        default=1, description="Of your own one: how many pods share the seeding of a dataset."
    )


class Canary(Closed):
    """What the canary tries."""

    forbidden: Annotated[tuple[str, ...], Field(max_length=64)] = Field(
        default=(), description="host:port that no sandbox may reach."
    )

    @field_validator("forbidden")
    @classmethod
    def _check(cls, targets: tuple[str, ...]) -> tuple[str, ...]:
        for target in targets:
            if not _TARGET.match(target):
                raise ValueError(f"{target!r} is not host:port")
        return targets


class PodDefaults(Closed):
    """Where and how pods run, unless a suite says otherwise."""

    resources: Resources | None = Field(default=None, description="Requests and limits of sandboxes.")
    runtime_class_name: Annotated[str, StringConstraints(max_length=253)] = Field(
        default="", description="RuntimeClass of all pods."
    )
    node_selector: Annotated[dict[LabelKey, LabelValue], Field(max_length=16)] = Field(
        default_factory=dict, description="Labels that a node must have."
    )
    tolerations: Annotated[tuple[Toleration, ...], Field(max_length=16)] = Field(
        default=(), description="Node taints that are tolerated."
    )
    user_namespace: Flag = Field(default=False, description="Root inside is nobody outside; needs a cluster that can.")


class Proxy(Closed):
    """How providers are reached."""

    https: _Url | None = Field(default=None, description="Proxy for requests to providers.")
    no_proxy: Annotated[str, StringConstraints(max_length=2000)] = Field(
        default="", description="Hosts that are reached without it."
    )

    @field_validator("https", mode="before")
    @classmethod
    def _read_empty(cls, value: object) -> object:
        return value or None


class CaBundle(Closed):
    """PEM certificates to trust instead of the system's."""

    config_map: Annotated[str, StringConstraints(max_length=253)] = Field(
        default="", description="ConfigMap in the operator's namespace; empty for none."
    )
    key: Annotated[str, StringConstraints(max_length=253)] = Field(default="ca.crt", description="Key in it.")


class OperatorSettings(Closed):
    """The whole file."""

    images: OwnImages = Field(description="Proctor's own images.")
    server_images: Annotated[dict[Name, Image], Field(max_length=64)] = Field(
        default_factory=dict, description="Images of servers whose suite names none, by the first word of the command."
    )
    clickhouse: ClickHouse = Field(description="Where results and datasets are kept.")
    allowed_hosts: Annotated[tuple[str, ...], Field(max_length=64)] = Field(
        default=("api.anthropic.com",), description="Provider hosts that models' requests may go to."
    )
    namespaces: Annotated[tuple[Name, ...], Field(max_length=256)] = Field(
        default=(), description="Namespaces that are watched; empty for all."
    )
    canary: Canary = Field(default=Canary(), description="What the canary tries.")
    sandbox_defaults: PodDefaults = Field(default=PodDefaults(), description="Where and how pods run.")
    image_pull_secrets: Annotated[tuple[ObjectName, ...], Field(max_length=8)] = Field(
        default=(), description="Secrets in a run's namespace for pulling images."
    )
    proxy: Proxy = Field(default=Proxy(), description="How providers are reached.")
    ca_bundle: CaBundle = Field(default=CaBundle(), description="Whom providers' certificates are checked against.")
    metrics_port: Port = Field(default=9090, description="Where Prometheus scrapes.")
    health_port: Port = Field(default=8080, description="Where the kubelet asks whether the operator lives.")

    @field_validator("allowed_hosts")
    @classmethod
    def _check(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for host in hosts:
            if not _HOST.match(host):
                raise ValueError(f"{host!r} is no host name: write host or host:port")
        return hosts


def read_settings(path: Path) -> OperatorSettings:
    """Read the settings.

    Raises:
        InvalidInput: a field is missing or wrong; the message names it.
    """
    try:
        return OperatorSettings.model_validate_json(_read(path, MAX_BYTES))
    except ValidationError as error:
        problems = (
            f"{'.'.join(str(part) for part in problem['loc']) or 'file'}: {problem['msg']}"
            for problem in error.errors(include_input=False, include_url=False, include_context=False)
        )
        raise InvalidInput(f"{path}: " + "; ".join(problems)) from None


def read_master_key(path: Path) -> bytes:
    """Read the key that every run's key is derived from.

    Raises:
        InvalidInput: it is no key; the message never quotes it.
    """
    try:
        key = bytes.fromhex(_read(path, 4 * MASTER_KEY_BYTES).decode().strip())
    except ValueError:
        raise InvalidInput(f"{path}: not hexadecimal: draw it with `openssl rand -hex {MASTER_KEY_BYTES}`") from None
    if len(key) < MASTER_KEY_BYTES:
        raise InvalidInput(f"{path}: shorter than {MASTER_KEY_BYTES} bytes: draw it with `openssl rand -hex 32`")
    return key


def _read(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as e:
        raise InvalidInput(f"{path}: {e.strerror}: mount the chart's ConfigMap and Secret there") from e
    if len(content) > most:
        raise InvalidInput(f"{path}: larger than {most} bytes")
    return content
