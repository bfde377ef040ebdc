"""What a run's pods reach on a real network, with policies and without."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from cluster.kubectl import Kubectl
from proctor.manifests.canary import Probe, build_canary
from proctor.manifests.names import Role
from proctor.manifests.policies import Pods, Ports, Surroundings, Way, build_policies
from proctor.manifests.scope import Images
from proctor.manifests.toolbox import Part, build_toolbox
from support.kube_objects import DATASET
from support.live_run import ATTACKS, NOTHING_AROUND, Field, listening, open_field, until

pytestmark = pytest.mark.cluster

_CLOSED = {"ECONNREFUSED", "ETIMEDOUT", "timed out", "EHOSTUNREACH", "ENETUNREACH"}


@dataclass(frozen=True, slots=True)
class Arena:
    """A run, a world around it, and where everything is.

    Attributes:
        field: the run's namespace.
        gateway: the gateway's address.
        world: address of a pod of another namespace, which answers as a store, a page and a name server.
        cell: address of another cell's pod, which listens.
        impostor: address of a pod of another namespace with the gateway's labels.
        node: the node's address.
        api: the API server's address, as pods see it.
    """

    field: Field
    gateway: str
    world: str
    cell: str
    impostor: str
    node: str
    api: str

    @property
    def targets(self) -> dict[str, Any]:
        """What nobody in a sandbox may reach, though somebody is there."""
        tcp = [
            [self.api, 443],
            [self.node, 10250],
            [self.node, 6443],
            *([self.world, port] for port in (53, 80, 8123, 8200, 9090)),
            [self.impostor, 8080],
            [self.gateway_pod, 9999],
        ]
        return {"tcp": tcp, "udp": [[self.world, 53]]}

    @property
    def gateway_pod(self) -> str:
        """Address of the gateway's pod."""
        return str(self.field.only(Role.GATEWAY)["status"]["podIP"])

    @property
    def closed(self) -> tuple[str, ...]:
        """The same, as the canary is told."""
        tcp = tuple(f"{host}:{port}" for host, port in self.targets["tcp"])
        return (*tcp, f"udp:{self.world}:53")


@pytest.fixture(scope="module")
def arena(kubectl: Kubectl, images: Images) -> Iterator[Arena]:
    with open_field(kubectl, images) as field, open_field(kubectl, images) as world:
        names = field.run.names
        world.ground()
        world.create(world.plain("world", listening(80, 53, 8123, 8200, 9090, udp=(53,))))
        world.create(world.plain("impostor", listening(8080), labels=names.labels(Role.GATEWAY)))
        around = Surroundings(
            operator=Pods(namespace=world.run.namespace, labels={"app": "operator"}),
            store=(),
            datasets=(
                Way(to=(Pods(namespace=world.run.namespace, labels={"app": "world"}),), ports=(Ports(first=8200),)),
            ),
            seeding=(),
            api_server=(),
        )
        gateway = field.prepare(around)
        listener = field.cell(1, listening(8080), gateway=gateway, env={})
        field.create(listener, field.plain("neighbour", listening(8080)))
        yield Arena(
            field=field,
            gateway=gateway,
            world=world.address("world"),
            impostor=world.address("impostor"),
            cell=field.address(listener["metadata"]["name"]),
            node=world.pod("world")["status"]["hostIP"],
            api=kubectl.get("service", "kubernetes", "--namespace=default")["spec"]["clusterIP"],
        )


def _dial(arena: Arena, name: str, pod: dict[str, Any]) -> dict[str, str]:
    arena.field.create(pod)
    found: dict[str, str] = arena.field.report(name)["dial"]
    return found


def _open(said: dict[str, str]) -> set[str]:
    return {target for target, outcome in said.items() if outcome == "ok"}


def _names(targets: dict[str, Any]) -> set[str]:
    return {f"{kind} {host}:{port}" for kind in ("tcp", "udp") for host, port in targets[kind]}


def test_s9_s10_s11_a_cell_reaches_the_gateway_alone(arena: Arena) -> None:
    """S7, S9, S10, S11: no API server, kubelet, store, name server, cell or impostor; the control does."""
    field = arena.field
    host, _, port = arena.gateway.rpartition(":")
    orders = {**arena.targets, "tcp": [*arena.targets["tcp"], [arena.cell, 8080], [host, int(port)]]}
    field.create(field.plain("control", ("python3", "-c", ATTACKS), orders={"dial": orders}))
    cell = field.attacker(2, {"dial": orders}, gateway=arena.gateway)
    inside = _dial(arena, cell["metadata"]["name"], cell)
    outside = field.report("control")["dial"]
    assert _open(inside) == {f"tcp {arena.gateway}"}
    # Another cell listens to nobody, and the gateway to nobody but cells and the operator.
    assert _names(arena.targets) - {f"tcp {arena.gateway_pod}:9999"} <= _open(outside)


def test_s10_a_server_reaches_its_dataset_alone(arena: Arena) -> None:
    """S10: a toolbox reaches where datasets are served, and neither gateway, API server, names nor anything else."""
    field = arena.field
    dataset = replace(DATASET, host=arena.world, port=8200, closed=(f"{arena.api}:443",))
    deployment, _ = build_toolbox(field.run, Part(server=0, scenario=0), dataset)
    template = deployment["spec"]["template"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**template["metadata"], "name": "server", "namespace": field.run.namespace},
        "spec": {**template["spec"], "restartPolicy": "Never"},
    }
    orders = {**arena.targets, "tcp": [*arena.targets["tcp"], [arena.gateway_pod, 8080], [arena.cell, 8080]]}
    field.become_attacker(pod, {"dial": orders})
    assert _open(_dial(arena, "server", pod)) == {f"tcp {arena.world}:8200"}


def test_s12_the_canary_says_that_policies_are_enforced(arena: Arena) -> None:
    """S12: with a cell's labels, all of it closed, the gateway open; S24: it reads how many processes there may be."""
    field = arena.field
    field.create(build_canary(field.run, Probe(gateway=arena.gateway, closed=arena.closed)))
    code, said = field.last_words(field.run.names.canary)
    assert code == 0
    assert set(said["forbidden"].values()) == {"closed"}
    assert said["allowed"] == {arena.gateway: "open"}
    assert said["pidsMax"] is None or said["pidsMax"] > 1


def test_s12_the_canary_says_that_they_are_not(kubectl: Kubectl, images: Images, arena: Arena) -> None:
    """S12: without an engine, policies are accepted and change nothing: to a pod, the same as none at all."""
    with open_field(kubectl, images) as bare:
        gateway = bare.prepare(policies=False)
        bare.create(build_canary(bare.run, Probe(gateway=gateway, closed=arena.closed)))
        code, said = bare.last_words(bare.run.names.canary)
    assert code == 1
    closed = {target for target, outcome in said["forbidden"].items() if outcome == "closed"}
    assert closed <= {f"{arena.gateway_pod}:9999"}
    assert said["allowed"] == {gateway: "open"}


def test_s13_an_agent_starts_after_its_policies(kubectl: Kubectl, images: Images, arena: Arena) -> None:
    """S13: policies that come late hold the agent back; it then finds everything closed."""
    with open_field(kubectl, images) as late:
        gateway = late.prepare(policies=False)
        cell = late.attacker(1, {"dial": {"tcp": [[arena.api, 443]]}}, gateway=gateway)
        first = cell["spec"]["initContainers"][0]
        first["command"] = [word.replace("10.96.0.1:443", f"{arena.api}:443") for word in first["command"]]
        late.create(cell)
        name = cell["metadata"]["name"]
        until(lambda: late.pod(name), lambda pod: "running" in _init_state(pod))
        assert "running" not in _agent_state(late.pod(name))
        late.create(*build_policies(late.run, NOTHING_AROUND))
        said = late.report(name)["dial"]
        policy = late.kubectl.get(
            "networkpolicy", late.run.names.policy(Role.SANDBOX), f"--namespace={late.run.namespace}"
        )
        assert said[f"tcp {arena.api}:443"] in _CLOSED
        assert _agent_state(late.pod(name))["terminated"]["startedAt"] >= policy["metadata"]["creationTimestamp"]


def test_s14_an_added_policy_is_seen_by_the_canary(kubectl: Kubectl, images: Images, arena: Arena) -> None:
    """S14: somebody allows everything to every pod of the namespace."""
    with open_field(kubectl, images) as opened:
        gateway = opened.prepare()
        kubectl.apply(
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": {"name": "allow-all", "namespace": opened.run.namespace},
                "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]},
            }
        )
        opened.create(build_canary(opened.run, Probe(gateway=gateway, closed=(f"{arena.world}:80",))))
        code, said = opened.last_words(opened.run.names.canary)
    assert code == 1
    assert said["forbidden"] == {f"{arena.world}:80": "open"}


def _init_state(pod: dict[str, Any]) -> dict[str, Any]:
    return dict(pod["status"].get("initContainerStatuses", [{"state": {}}])[0]["state"])


def _agent_state(pod: dict[str, Any]) -> dict[str, Any]:
    return dict(pod["status"].get("containerStatuses", [{"state": {}}])[0]["state"])
