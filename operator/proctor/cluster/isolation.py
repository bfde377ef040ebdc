"""Whether sandboxes reach nothing but the gateway: shown by a canary, and held to while the run goes on (S12, S14)."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from proctor.adapters.kube.client import Object
from proctor.cluster.gateway import Gateway
from proctor.cluster.ground import Ground
from proctor.cluster.installation import Installation
from proctor.cluster.looking import Seen
from proctor.cluster.pods import PodSeen
from proctor.manifests.canary import CANARY_ATTEMPT, Probe, build_canary
from proctor.manifests.names import Role, RunNames
from proctor.reconcile.observed import GatewaySeen, Isolation, Readiness

_MOST_CLOSED = 60


@dataclass(frozen=True, slots=True)
class IsolationSeen:
    """What is known of it.

    Attributes:
        message: what is open that must not be, for people.
    """

    state: Isolation
    message: str = ""


def find_closed(installation: Installation, seen: Seen) -> tuple[str, ...]:
    """Return what has to be closed to a sandbox: what is closed to all strangers, datasets, and toolboxes."""
    children = seen.children
    own = []
    if children is not None:
        own = [f"{place.host}:{place.port}" for place in children.datasets.values()]
        own += [f"{place.host}:{place.port}" for place in children.toolboxes]
    return _limit((*find_closed_to_all(installation, seen), *own))


def find_closed_to_all(installation: Installation, seen: Seen) -> tuple[str, ...]:
    """Return what has to be closed to strangers' code wherever it runs: what the chart names, and the store."""
    children = seen.children
    store = [] if children is None else [f"{children.store.host}:{children.store.port}"]
    return _limit((*installation.settings.canary.forbidden, *store))


def _limit(targets: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(target for target in targets if _is_address(target)))[:_MOST_CLOSED]


def _is_address(target: str) -> bool:
    try:
        ipaddress.ip_address(target.removeprefix("udp:").rpartition(":")[0].strip("[]"))
    except ValueError:
        return False
    return True


async def observe_isolation(ground: Ground, seen: Seen, now: datetime, *, patience: timedelta) -> IsolationSeen:
    """Say what the canary found, and whether that still holds.

    Raises:
        Retryable: what policies name can't be found now.
    """
    foreign = find_foreign(seen.policies, ground.names)
    if foreign:
        names = ", ".join(foreign)
        return IsolationSeen(Isolation.BROKEN, f"NetworkPolicy {names} of the namespace selects sandboxes; change it")
    canary = next((pod for pod in seen.pods if pod.name == ground.names.canary), None)
    if canary is None:
        return IsolationSeen(Isolation.UNPROVEN)
    missing = await ground.policies_missing(seen)
    if missing:
        return IsolationSeen(Isolation.BROKEN, f"NetworkPolicy {missing[0]} was deleted or changed during the run")
    return judge_canary(canary, now, patience=patience)


async def prove(ground: Ground, gateway: Gateway, seen: Seen, state: GatewaySeen) -> None:
    """Bring the proof one stage on: the gateway first, then the canary.

    Raises:
        Retryable: not now.
        Terminal: never.
        InvalidInput: the cluster refuses it.
    """
    if state.state is Readiness.ABSENT:
        await gateway.start(seen)
    elif state.state is Readiness.READY:
        closed = find_closed(ground.installation, seen)
        await ground.create(build_canary(ground.scope, Probe(gateway=gateway.address(seen), closed=closed)))


def judge_canary(canary: PodSeen, now: datetime, *, patience: timedelta) -> IsolationSeen:
    """Say what a canary's last words mean; one that never speaks proves nothing."""
    if not canary.ended:
        if now - canary.created <= patience:
            return IsolationSeen(Isolation.UNPROVEN)
        why = canary.message or canary.waiting or "it does not start"
        return IsolationSeen(Isolation.BROKEN, f"the canary said nothing for {patience.total_seconds():.0f} s: {why}")
    try:
        said: dict[str, Any] = json.loads(canary.message)
        opened = sorted(target for target, state in said["forbidden"].items() if state != "closed")
        shut = sorted(target for target, state in said["allowed"].items() if state != "open")
    except (ValueError, KeyError, TypeError, AttributeError):
        return IsolationSeen(Isolation.BROKEN, f"the canary ended without a result: {canary.message or canary.reason}")
    if opened:
        return IsolationSeen(
            Isolation.BROKEN, f"the canary reached {', '.join(opened)}: no engine enforces NetworkPolicy"
        )
    if shut or not canary.succeeded:
        return IsolationSeen(Isolation.BROKEN, f"the canary did not reach {', '.join(shut) or 'anything'}")
    return IsolationSeen(Isolation.ENFORCED)


def find_foreign(policies: tuple[Object, ...], names: RunNames) -> list[str]:
    """Return the policies of others that select this run's sandboxes: policies add up, so one could open them (S14)."""
    own = {names.policy(role) for role in Role}
    labels = names.attempt_labels(CANARY_ATTEMPT)
    return [
        policy["metadata"]["name"]
        for policy in policies
        if policy["metadata"]["name"] not in own and opens(policy["spec"]) and _selects(policy["spec"], labels)
    ]


def opens(spec: Object) -> bool:
    """Tell whether a policy admits anything; one that only closes is harmless."""
    return bool(spec.get("ingress") or spec.get("egress"))


def _selects(spec: Object, labels: dict[str, str]) -> bool:
    selector = spec.get("podSelector") or {}
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(name) != value for name, value in wanted.items()):
        return False
    return all(_matches(expression, labels) for expression in selector.get("matchExpressions") or ())


def _matches(expression: Object, labels: dict[str, str]) -> bool:
    name, values = expression["key"], expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return labels.get(name) in values
        case "NotIn":
            return labels.get(name) not in values
        case "Exists":
            return name in labels
        case "DoesNotExist":
            return name not in labels
        case _:
            return True  # what is not understood may select it
