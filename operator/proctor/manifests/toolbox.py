"""Servers under test, each for one dataset, and the hooks that prepare them; strangers' code, in strangers' images.

A server on standard input and output needs no change to its image: an init container brings a static busybox, whose
`nc` gives each connection a fresh process of the server. The gateway dials it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from proctor.api.server import DatasetField, Server
from proctor.errors import InvalidInput
from proctor.manifests.canary import waiting_container
from proctor.manifests.documents import DATASET_PASSWORD
from proctor.manifests.jobs import build_job
from proctor.manifests.names import Role
from proctor.manifests.pods import (
    SCRATCH_ENVIRONMENT,
    Container,
    Pod,
    mount,
    scratch_mounts,
    scratch_volume,
    secret_variable,
    variable,
    variables,
)
from proctor.manifests.scope import Amounts, KubeObject, RunScope
from proctor.manifests.services import build_service, command_probe, one_replica, tcp_probe

TOOLBOX_PORT = 8080
"""Of a server that is spoken to on its standard input and output, and of a hook."""

_TOOLKIT = "/toolkit"
_BUSYBOX = f"{_TOOLKIT}/busybox"
_IMAGE_BUSYBOX = "/bin/busybox"
"""Where the sandbox's image has it, linked statically."""

_SERVE = 'exec "$0" "$@" 2>/proc/1/fd/2'
"""What it says on standard error goes to the pod's log: busybox would send it to the connection."""

_HOOK = '"$0" "$@" 2>/proc/1/fd/2; code=$?; echo; echo "exit $code"; exit $code'
"""The last line that the gateway reads is how the hook ended, the last but one what it printed last."""

_LISTENS = ("grep", "-q", f":{TOOLBOX_PORT:04X} .* 0A ", "/proc/net/tcp", "/proc/net/tcp6")
"""To connect would start a server each time; the kernel's table says that somebody listens (state 0A)."""

_START_SECONDS = 120
_SCRATCH_SIZE = "256Mi"
_PROCESS_MIB = 256
"""What one process of a server may need."""
_MOST_PROCESSES = 16
_WAIT_AMOUNTS = Amounts(cpu="250m", memory="64Mi", storage="16Mi", cpu_set_aside="50m")
_TOOLKIT_AMOUNTS = Amounts(cpu="200m", memory="32Mi", storage="16Mi", cpu_set_aside="10m")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetAt:
    """Where a dataset is served, as the pod reaches it: an address, never a name.

    Attributes:
        host: an IP address.
        port: of ClickHouse's HTTP interface.
        user: read-only, of this dataset alone; its password is in the run's Secret.
        database: the dataset's.
        closed: targets that have to be closed before a server starts, as of `canary.Probe`.
    """

    host: str
    port: int
    user: str
    database: str
    closed: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """All that a server may reach."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A server and a dataset, by their indices in the suite."""

    server: int
    scenario: int


def is_started(server: Server) -> bool:
    """Whether a server is started for the run; another runs elsewhere."""
    return server.http is None or server.http.url is None


def toolbox_port(server: Server) -> int:
    """Return the port of a server that is started for the run."""
    return server.http.port or TOOLBOX_PORT if server.http is not None else TOOLBOX_PORT


def build_toolbox(scope: RunScope, part: Part, dataset: DatasetAt) -> tuple[KubeObject, KubeObject]:
    """Return the Deployment and Service of a server that is started for the run.

    Raises:
        InvalidInput: its image is missing, or not named by its digest.
    """
    server = scope.suite.servers[part.server]
    metadata = scope.metadata(
        scope.names.toolbox(part.server, part.scenario),
        scope.names.part_labels(Role.TOOLBOX, part.server, part.scenario),
    )
    deployment = one_replica(metadata, metadata["labels"], _server_pod(scope, server, dataset))
    return deployment, build_service(metadata, metadata["labels"], toolbox_port(server))


def build_provision(scope: RunScope, part: Part, dataset: DatasetAt, server_url: str) -> tuple[KubeObject, KubeObject]:
    """Return the Job and Service of a server's hook: it runs once for each connection of the gateway, which reads it.

    What it prints may hold a credential, so it goes to no log and no status. It waits until the run is over: a gateway
    that was started again asks again.

    Args:
        scope: the run.
        part: which server, which dataset.
        dataset: where the dataset is.
        server_url: scheme, host and port at which the hook reaches the server.

    Raises:
        InvalidInput: its image is missing, or not named by its digest.
    """
    server = scope.suite.servers[part.server]
    if server.provision is None:
        raise InvalidInput(f"server {server.name!r} has no provision")
    fields = {f"PROCTOR_DATASET_{field.name}": field for field in DatasetField}
    container = Container(
        name="provision",
        image=scope.images.admit(server.provision.image or server.image, f"provision of server {server.name!r}"),
        amounts=Amounts(cpu="1", memory="512Mi", storage="64Mi", cpu_set_aside="50m"),
        command=_dialled(_HOOK, server.provision.command),
        env=(
            *_environment(scope, server, dataset),
            *(_dataset_variable(scope, name, field, dataset) for name, field in fields.items()),
            variable("PROCTOR_SERVER_URL", server_url),
        ),
        mounts=(mount("toolkit", _TOOLKIT), *scratch_mounts()),
        port=TOOLBOX_PORT,
        startup=_listening(),
    )
    names, deadline = scope.names, scope.suite.limits.active_deadline_seconds
    metadata = scope.metadata(
        names.provision(part.server, part.scenario), names.part_labels(Role.PROVISION, part.server, part.scenario)
    )
    looks_up = not is_started(server)
    pod = _stranger(scope, container, dataset, dialled=True)
    pod = replace(pod, deadline_seconds=deadline, dns=looks_up)
    return build_job(metadata, pod), build_service(metadata, metadata["labels"], TOOLBOX_PORT)


def _server_pod(scope: RunScope, server: Server, dataset: DatasetAt) -> Pod:
    image = scope.images.admit(server.image, f"server {server.name!r}")
    environment = _environment(scope, server, dataset)
    if server.http is not None:
        port = toolbox_port(server)
        container = Container(
            name="server",
            image=image,
            amounts=_amounts(1024),
            command=server.http.command or (),
            env=environment,
            mounts=scratch_mounts(),
            port=port,
            startup=tcp_probe(port, period=1, failures=_START_SECONDS),
            readiness=tcp_probe(port, period=10, failures=3),
        )
        return _stranger(scope, container, dataset, dialled=False)
    assert server.stdio is not None  # noqa: S101 - validation admits no server without a transport
    processes = 1 + min(scope.suite.parallelism, _MOST_PROCESSES)
    container = Container(
        name="server",
        image=image,
        amounts=_amounts(_PROCESS_MIB * processes),
        command=_dialled(_SERVE, server.stdio.command),
        env=environment,
        mounts=(mount("toolkit", _TOOLKIT), *scratch_mounts()),
        port=TOOLBOX_PORT,
        startup=_listening(),
    )
    return _stranger(scope, container, dataset, dialled=True)


def _stranger(scope: RunScope, container: Container, dataset: DatasetAt, *, dialled: bool) -> Pod:
    """Return the pod of strangers' code, which starts once its way to all but the dataset is closed (S10, S13)."""
    closed = tuple(target for target in dataset.closed if target != dataset.address)
    wait = waiting_container(scope, answers=dataset.address, closed=closed, amounts=_WAIT_AMOUNTS)
    volumes = [scratch_volume(_SCRATCH_SIZE)]
    if dialled:
        volumes.append({"name": "toolkit", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}})
    return Pod(
        containers=(container,),
        before=(wait, _toolkit(scope)) if dialled else (wait,),
        volumes=tuple(volumes),
        account=scope.names.account,
        placement=scope.untrusted_placement,
        deadline_seconds=None,
    )


def _toolkit(scope: RunScope) -> Container:
    return Container(
        name="toolkit",
        image=scope.images.sandbox,
        amounts=_TOOLKIT_AMOUNTS,
        command=(_IMAGE_BUSYBOX, "cp", _IMAGE_BUSYBOX, _BUSYBOX),
        mounts=(mount("toolkit", _TOOLKIT, writable=True),),
    )


def _dialled(script: str, command: tuple[str, ...]) -> tuple[str, ...]:
    port = str(TOOLBOX_PORT)
    return (_BUSYBOX, "nc", "-ll", "-p", port, "-e", _BUSYBOX, "sh", "-c", script, *command)


def _listening() -> KubeObject:
    return command_probe((_BUSYBOX, *_LISTENS), period=1, failures=_START_SECONDS)


def _amounts(mebibytes: int) -> Amounts:
    return Amounts(cpu="2", memory=f"{mebibytes}Mi", storage="256Mi", cpu_set_aside="100m")


def _environment(scope: RunScope, server: Server, dataset: DatasetAt) -> tuple[KubeObject, ...]:
    given = tuple(_given(scope, server, dataset))
    own = {item["name"] for item in given}
    basic = {name: value for name, value in SCRATCH_ENVIRONMENT.items() if name not in own}
    return (*variables(basic), *given)


def _given(scope: RunScope, server: Server, dataset: DatasetAt) -> Iterator[KubeObject]:
    for item in server.env:
        if item.secret_key_ref is not None:
            yield secret_variable(item.name, item.secret_key_ref.name, item.secret_key_ref.key)
        elif item.dataset is not None:
            yield _dataset_variable(scope, item.name, item.dataset, dataset)
        else:
            yield variable(item.name, item.value or "")


def _dataset_variable(scope: RunScope, name: str, field: DatasetField, dataset: DatasetAt) -> KubeObject:
    if field is DatasetField.PASSWORD:
        return secret_variable(name, scope.names.keys, DATASET_PASSWORD)
    return variable(name, str(getattr(dataset, field.value)))
