"""Who may talk to whom: one NetworkPolicy per role, for this run's pods alone (S9, S10, S11, S14).

Each names a direction that it closes even where it opens nothing. A peer is a pod's labels and its namespace in one
entry: two entries would mean either. Proxies of Services pass on to a pod before a policy is asked, so that addresses
and ports are the pods' own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from proctor.errors import InvalidInput
from proctor.manifests.gateway import GATEWAY_PORT, calls_elsewhere, calls_providers
from proctor.manifests.names import Role
from proctor.manifests.scope import KubeObject, RunScope
from proctor.manifests.toolbox import TOOLBOX_PORT, is_started, toolbox_port

_NAMESPACE_LABEL = "kubernetes.io/metadata.name"

_PRIVATE = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
    *("192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4"),
)
"""What is nobody's on the internet: the cluster, its nodes, its cloud's metadata."""
_PUBLIC_6 = "2000::/3"
_TUNNELS_6 = ("2001::/32", "2002::/16")
"""Their addresses hold one of the fourth version, which may be private."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """Pods of a namespace."""

    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)

    def to_object(self) -> KubeObject:
        """Return it as a policy has it."""
        return {
            "namespaceSelector": {"matchLabels": {_NAMESPACE_LABEL: self.namespace}},
            "podSelector": {"matchLabels": dict(self.labels)},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Addresses."""

    cidr: str
    without: tuple[str, ...] = ()

    def to_object(self) -> KubeObject:
        """Return it as a policy has it."""
        return {"ipBlock": {"cidr": self.cidr, **({"except": list(self.without)} if self.without else {})}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """A port or, up to `last`, a range of ports."""

    first: int
    last: int | None = None
    protocol: str = "TCP"

    def to_object(self) -> KubeObject:
        """Return it as a policy has it."""
        end = {"endPort": self.last} if self.last is not None else {}
        return {"protocol": self.protocol, "port": self.first, **end}


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Where something may be sent, or come from.

    Raises:
        InvalidInput: it names no peer or no port, which to Kubernetes means any.
    """

    to: tuple[Pods | Block, ...]
    ports: tuple[Ports, ...]

    def __post_init__(self) -> None:
        if not self.to or not self.ports:
            raise InvalidInput("network policy: a way without peers or without ports would be open to all")

    def to_object(self, direction: str) -> KubeObject:
        """Return it as a policy has it, `to` or `from`."""
        return {
            direction: [peer.to_object() for peer in self.to],
            "ports": [ports.to_object() for ports in self.ports],
        }


def internet(*ports: int) -> Way:
    """Return the way to every public address."""
    blocks = (Block(cidr="0.0.0.0/0", without=_PRIVATE), Block(cidr=_PUBLIC_6, without=_TUNNELS_6))
    return Way(to=blocks, ports=tuple(Ports(first=port) for port in ports))


def cluster_dns() -> Way:
    """Return the way to the cluster's name servers, wherever they run."""
    everywhere = Pods(namespace="kube-system", labels={"k8s-app": "kube-dns"})
    return Way(to=(everywhere,), ports=(Ports(first=53, protocol="UDP"), Ports(first=53)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is around a run, as policies have to name it.

    Attributes:
        operator: who controls gateways.
        store: the results store.
        datasets: where datasets are served to whoever reads them.
        seeding: where datasets are made, and let go.
        api_server: what the grader writes its summary to.
        providers: hosts of models, of the judge's too.
        elsewhere: hosts of servers under test that run elsewhere.
        dns: name servers, for those who call hosts by name.
    """

    operator: Pods
    store: tuple[Way, ...]
    datasets: tuple[Way, ...]
    seeding: tuple[Way, ...]
    api_server: tuple[Way, ...]
    providers: tuple[Way, ...] = (internet(443),)
    elsewhere: tuple[Way, ...] = (internet(443),)
    dns: tuple[Way, ...] = (cluster_dns(),)


def build_policies(scope: RunScope, around: Surroundings) -> tuple[KubeObject, ...]:
    """Return the policies of a run, of every role that it has."""
    by_role = {
        Role.SANDBOX: _sandbox(scope),
        Role.GATEWAY: _gateway(scope, around),
        Role.TOOLBOX: _toolbox(scope, around),
        Role.SEED: _Rules(egress=(*around.seeding, *around.store)),
        Role.GRADE: _grade(scope, around),
    }
    if any(server.provision is not None for server in scope.suite.servers):
        by_role[Role.PROVISION] = _provision(scope, around)
    return tuple(_policy(scope, role, rules) for role, rules in by_role.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    ingress: tuple[Way, ...] = ()
    egress: tuple[Way, ...] = ()


def _sandbox(scope: RunScope) -> _Rules:
    return _Rules(egress=(_to(scope, Role.GATEWAY, (GATEWAY_PORT,)),))


def _gateway(scope: RunScope, around: Surroundings) -> _Rules:
    suite = scope.suite
    named = (
        *(around.providers if calls_providers(suite) else ()),
        *(around.elsewhere if calls_elsewhere(suite) else ()),
    )
    callers = Way(to=(_pods(scope, Role.SANDBOX), around.operator), ports=(Ports(first=GATEWAY_PORT),))
    hooks = (_to(scope, Role.PROVISION, (TOOLBOX_PORT,)),) if _has_hooks(scope) else ()
    return _Rules(
        ingress=(callers,),
        egress=(
            *_toolboxes(scope),
            *hooks,
            *around.store,
            *around.datasets,
            *named,
            *(around.dns if named else ()),
        ),
    )


def _toolbox(scope: RunScope, around: Surroundings) -> _Rules:
    callers = (_pods(scope, Role.GATEWAY), *((_pods(scope, Role.PROVISION),) if _has_hooks(scope) else ()))
    ports = tuple(Ports(first=port) for port in _toolbox_ports(scope))
    return _Rules(ingress=(Way(to=callers, ports=ports),) if ports else (), egress=around.datasets)


def _provision(scope: RunScope, around: Surroundings) -> _Rules:
    elsewhere = (*around.elsewhere, *around.dns) if calls_elsewhere(scope.suite) else ()
    callers = Way(to=(_pods(scope, Role.GATEWAY),), ports=(Ports(first=TOOLBOX_PORT),))
    return _Rules(ingress=(callers,), egress=(*_toolboxes(scope), *around.datasets, *elsewhere))


def _grade(scope: RunScope, around: Surroundings) -> _Rules:
    judge = (*around.providers, *around.dns) if scope.suite.judge.anthropic is not None else ()
    # When all is graded, whoever serves the datasets is told that nobody needs them any more.
    letting_go = tuple(way for way in around.seeding if way not in around.store)
    return _Rules(egress=(*around.store, *around.datasets, *letting_go, *around.api_server, *judge))


def _policy(scope: RunScope, role: Role, rules: _Rules) -> KubeObject:
    names = scope.names
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": scope.metadata(names.policy(role), names.labels(role)),
        "spec": {
            "podSelector": {"matchLabels": names.selector(role)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [way.to_object("from") for way in rules.ingress],
            "egress": [way.to_object("to") for way in rules.egress],
        },
    }


def _has_hooks(scope: RunScope) -> bool:
    return any(server.provision is not None for server in scope.suite.servers)


def _toolbox_ports(scope: RunScope) -> list[int]:
    return sorted({toolbox_port(server) for server in scope.suite.servers if is_started(server)})


def _toolboxes(scope: RunScope) -> tuple[Way, ...]:
    ports = _toolbox_ports(scope)
    return (_to(scope, Role.TOOLBOX, ports),) if ports else ()


def _to(scope: RunScope, role: Role, ports: Iterable[int]) -> Way:
    return Way(to=(_pods(scope, role),), ports=tuple(Ports(first=port) for port in ports))


def _pods(scope: RunScope, role: Role) -> Pods:
    return Pods(namespace=scope.namespace, labels=scope.names.selector(role))
