"""Who may talk to whom, asked of the rendered policies as an engine would."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.errors import InvalidInput
from proctor.manifests.names import Role
from proctor.manifests.policies import Block, Ports, Way, build_policies
from support.kube_objects import API_SERVER, CLICKHOUSE, EVERYTHING, OPERATOR, scope, suite_spec, surroundings
from support.network_rules import Place, may_send

NAMES = scope().names
HERE = scope().namespace


def _pod(role: Role, namespace: str = HERE, **labels: str) -> Place:
    return Place(namespace=namespace, labels={**NAMES.labels(role), **labels})


PLACES = {
    **{role.value: _pod(role) for role in Role},
    "another cell": _pod(Role.SANDBOX, **{"proctor.dev/attempt": "other"}),
    "operator": Place(namespace=OPERATOR.namespace, labels=OPERATOR.labels),
    "clickhouse": Place(namespace=CLICKHOUSE.namespace, labels=CLICKHOUSE.labels),
    "neighbour": Place(namespace=HERE, labels={"app": "shop"}),
    "dns": Place(namespace="kube-system", labels={"k8s-app": "kube-dns"}),
    "api server": Place(address=API_SERVER),
    "metadata": Place(address="169.254.169.254"),
    "kubelet": Place(address="10.88.0.7"),
    "internet": Place(address="203.0.113.7"),
    "internet 6": Place(address="2606:4700::1111"),
}
PORTS = (53, 80, 443, 6443, 8080, 8123, 8124, 8200, 8231, 8232, 9000, 9090, 10250)


def _ways(suite: dict[str, Any], sender: str) -> set[str]:
    """Where a place may send to, as ``name:port``."""
    policies = build_policies(scope(suite_spec(**suite)), surroundings())
    return {
        f"{name}:{port}"
        for name, place in PLACES.items()
        for port in PORTS
        if may_send(policies, PLACES[sender], place, port)
    }


_GATEWAY_ALWAYS = {"toolbox:8080", "clickhouse:8123", "clickhouse:8200", "clickhouse:8231"}
_OUT = {"internet:443", "internet 6:443", "dns:53"}


@pytest.mark.parametrize(
    ("sender", "small", "everything"),
    [
        ("sandbox", {"gateway:8080"}, {"gateway:8080"}),
        (
            "gateway",
            _GATEWAY_ALWAYS,
            _GATEWAY_ALWAYS | _OUT | {"toolbox:9000", "provision:8080"},
        ),
        ("toolbox", {"clickhouse:8200", "clickhouse:8231"}, {"clickhouse:8200", "clickhouse:8231"}),
        ("seed", {"clickhouse:8123", "clickhouse:8124"}, {"clickhouse:8123", "clickhouse:8124"}),
        (
            "grade",
            {*("clickhouse:8123", "clickhouse:8124", "clickhouse:8200", "clickhouse:8231"), "api server:6443"},
            {*("clickhouse:8123", "clickhouse:8124", "clickhouse:8200", "clickhouse:8231"), "api server:6443"} | _OUT,
        ),
    ],
)
def test_s9_s10_each_role_reaches_what_it_needs(sender: str, small: set[str], everything: set[str]) -> None:
    """S9, S10, S11: all that each role may send to, of everything that is around; a suite with more needs has more."""
    assert _ways({}, sender) == small
    assert _ways(EVERYTHING, sender) == everything


def test_s10_a_hook_reaches_server_dataset_and_what_is_elsewhere() -> None:
    """S10: a provision hook, where there is one."""
    wanted = {"toolbox:8080", "toolbox:9000", "clickhouse:8200", "clickhouse:8231"} | _OUT
    assert _ways(EVERYTHING, "provision") == wanted


@pytest.mark.parametrize("receiver", ["sandbox", "seed", "grade"])
def test_s9_nobody_reaches_those_who_listen_to_nobody(receiver: str) -> None:
    """S9: no pod of the run, no neighbour, not the operator."""
    policies = build_policies(scope(suite_spec(**EVERYTHING)), surroundings())
    assert not any(may_send(policies, place, PLACES[receiver], port) for place in PLACES.values() for port in PORTS)


def test_s10_the_gateway_is_called_by_sandboxes_and_the_operator() -> None:
    """S10: on its one port, and by nobody else."""
    policies = build_policies(scope(), surroundings())
    callers = {
        f"{name}:{port}"
        for name, place in PLACES.items()
        for port in PORTS
        if may_send(policies, place, PLACES["gateway"], port)
    }
    assert callers == {"sandbox:8080", "another cell:8080", "operator:8080"}


@pytest.mark.parametrize("role", ["gateway", "toolbox", "provision"])
def test_s10_labels_in_another_namespace_mean_nothing(role: str) -> None:
    """S10: a pod with the same labels elsewhere is neither let in nor let near."""
    policies = build_policies(scope(suite_spec(**EVERYTHING)), surroundings())
    impostors = [_pod(one, namespace="team-b") for one in Role]
    for impostor in impostors:
        assert not any(may_send(policies, impostor, PLACES[role], port) for port in PORTS)
        assert not any(may_send(policies, PLACES["sandbox"], impostor, port) for port in PORTS)


def test_s9_no_other_pod_of_the_namespace_is_touched() -> None:
    """S9: every policy selects one role of one run, and closes both directions; another run's cells are not its own."""
    policies = build_policies(scope(suite_spec(**EVERYTHING)), surroundings())
    assert {policy["metadata"]["name"] for policy in policies} == {NAMES.policy(role) for role in Role}
    for policy in policies:
        role = Role(policy["metadata"]["labels"]["proctor.dev/role"])
        assert policy["spec"]["podSelector"] == {"matchLabels": NAMES.selector(role)}
        assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    other = scope(uid="another").names
    stranger = Place(namespace=HERE, labels=other.labels(Role.SANDBOX))
    assert not may_send(policies, stranger, PLACES["gateway"], 8080)
    assert may_send(policies, PLACES["neighbour"], PLACES["neighbour"], 80)


@pytest.mark.parametrize(
    ("address", "reached"),
    [
        ("203.0.113.7", True),
        ("10.1.2.3", False),
        ("172.20.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.100.100.200", False),
        ("127.0.0.1", False),
        ("2606:4700::1111", True),
        ("fd00:ec2::254", False),
        ("fe80::1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::a9fe:a9fe", False),
        ("2002:a9fe:a9fe::", False),
    ],
)
def test_s9_the_internet_is_public_addresses(address: str, reached: bool) -> None:
    """S9: a gateway that calls providers still reaches no node, no metadata, no other pod by its address."""
    policies = build_policies(scope(suite_spec(**EVERYTHING)), surroundings())
    assert may_send(policies, PLACES["gateway"], Place(address=address), 443) is reached


def test_a_way_is_never_open_by_mistake() -> None:
    """An empty list of peers or ports means all of them to Kubernetes, so there is none."""
    for to, ports in (((), (Ports(first=1),)), ((Block(cidr="10.0.0.1/32"),), ())):
        with pytest.raises(InvalidInput, match="open to all"):
            Way(to=to, ports=ports)
