"""What a NetworkPolicy engine says about two places, by the API's own rules."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from proctor.manifests.scope import KubeObject


@dataclass(frozen=True, slots=True)
class Place:
    """A pod, or an address outside the cluster.

    Attributes:
        namespace: of the pod; empty for an address.
        labels: of the pod.
        address: of what is no pod.
    """

    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    address: str = ""


def may_send(policies: Iterable[KubeObject], sender: Place, receiver: Place, port: int) -> bool:
    """What a NetworkPolicy engine would say, by the API's own rules: both ends have to agree."""
    policies = tuple(policies)
    out = _rules(policies, "egress", sender)
    into = _rules(policies, "ingress", receiver)
    return _admits(out, "to", receiver, port) and _admits(into, "from", sender, port)


def _rules(policies: tuple[KubeObject, ...], direction: str, subject: Place) -> list[KubeObject] | None:
    """What holds for a place in a direction; None if no policy is about it."""
    about = [
        policy["spec"]
        for policy in policies
        if subject.namespace == policy["metadata"]["namespace"]
        and direction.capitalize() in policy["spec"]["policyTypes"]
        and _selects(policy["spec"]["podSelector"], subject.labels)
    ]
    return [rule for spec in about for rule in spec[direction]] if about else None


def _admits(rules: list[KubeObject] | None, side: str, other: Place, port: int) -> bool:
    return rules is None or any(_has_peer(rule, side, other) and _has_port(rule, port) for rule in rules)


def _selects(selector: KubeObject, labels: Mapping[str, str]) -> bool:
    return set(selector) <= {"matchLabels"} and selector.get("matchLabels", {}).items() <= labels.items()


def _has_peer(rule: KubeObject, side: str, other: Place) -> bool:
    return not rule.get(side) or any(_is_peer(peer, other) for peer in rule[side])


def _is_peer(peer: KubeObject, other: Place) -> bool:
    if "ipBlock" in peer:
        if not other.address:
            return False
        address = ipaddress.ip_address(other.address)
        inside = address in ipaddress.ip_network(peer["ipBlock"]["cidr"])
        return inside and not any(address in ipaddress.ip_network(net) for net in peer["ipBlock"].get("except", []))
    # Without a selector of namespaces a peer would mean the policy's own; every peer here has both.
    about = {"kubernetes.io/metadata.name": other.namespace}
    return (
        bool(other.namespace)
        and _selects(peer["namespaceSelector"], about)
        and _selects(peer["podSelector"], other.labels)
    )


def _has_port(rule: KubeObject, number: int) -> bool:
    return not rule.get("ports") or any(
        entry["protocol"] == "TCP" and entry["port"] <= number <= entry.get("endPort", entry["port"])
        for entry in rule["ports"]
    )
