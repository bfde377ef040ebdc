"""What a run asks of its namespace: every kind of pod that it will have, and how much all of them need at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from proctor.manifests.gateway import build_gateway
from proctor.manifests.jobs import build_grade, build_seed
from proctor.manifests.names import Role
from proctor.manifests.sandbox import SandboxAttempt, build_sandbox
from proctor.manifests.scope import KubeObject, RunScope
from proctor.manifests.toolbox import DatasetAt, Part, build_provision, build_toolbox, is_started

PODS = "pods"

_NOWHERE = "192.0.2.1"
"""An address of nobody's: these pods are asked about, and never run."""
_DATASET = DatasetAt(host=_NOWHERE, port=8123, user="nobody", database="none")
_ATTEMPT = "00000000000000000000"
_UNITS = {
    "m": Decimal("0.001"),
    "": Decimal(1),
    **{unit: Decimal(1000) ** power for power, unit in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    **{unit: Decimal(1024) ** power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
}

Needs = Mapping[str, Decimal]
"""By the name that a ResourceQuota has for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodKind:
    """Pods of one kind.

    Attributes:
        role: what they are for.
        count: how many there are at once.
        pod: one of them.
    """

    role: Role
    count: int
    pod: KubeObject


def list_pods(scope: RunScope) -> tuple[PodKind, ...]:
    """Return the pods that a run will have; of no account, since theirs is made with the run.

    Raises:
        InvalidInput: one can't be built, as its image is missing or not named by its digest.
    """
    suite = scope.suite
    indices = range(len(suite.scenarios))
    kinds = [PodKind(role=Role.SEED, count=1, pod=_pod_of(build_seed(scope, index, ()))) for index in indices]
    kinds.append(PodKind(role=Role.GATEWAY, count=1, pod=_pod_of(build_gateway(scope)[0])))
    for number, server in enumerate(suite.servers):
        part, count = Part(server=number, scenario=0), len(suite.scenarios)
        if is_started(server):
            pod = _pod_of(build_toolbox(scope, part, _DATASET)[0])
            kinds.append(PodKind(role=Role.TOOLBOX, count=count, pod=pod))
        if server.provision is not None:
            hook = _pod_of(build_provision(scope, part, _DATASET, f"http://{_NOWHERE}:8080")[0])
            kinds.append(PodKind(role=Role.PROVISION, count=count, pod=hook))
    attempt = SandboxAttempt(
        opaque_id=_ATTEMPT,
        token="",
        gateway=f"{_NOWHERE}:8080",
        control=False,
        deadline_seconds=1,
        closed=(f"{_NOWHERE}:443",),
    )
    kinds.append(PodKind(role=Role.SANDBOX, count=suite.parallelism, pod=_unbound(build_sandbox(scope, attempt))))
    job = next(body for body in build_grade(scope) if body["kind"] == "Job")
    return (*kinds, PodKind(role=Role.GRADE, count=1, pod=_pod_of(job)))


def sum_needs(kinds: Iterable[PodKind]) -> Needs:
    """Return what has to be there at once: seeding is over before anything else begins."""
    total: defaultdict[str, Decimal] = defaultdict(Decimal)
    seeding: defaultdict[str, Decimal] = defaultdict(Decimal)
    for kind in kinds:
        counted = seeding if kind.role is Role.SEED else total
        for name, amount in _needs_of(kind.pod["spec"]):
            counted[name] += amount * kind.count
    return {name: max(total[name], seeding[name]) for name in {*total, *seeding}}


def parse_quantity(text: str) -> Decimal:
    """Return a quantity as Kubernetes writes it, in units of its base."""
    number = text.rstrip("kKmMGTPEi")
    return Decimal(number) * _UNITS[text[len(number) :]]


def _pod_of(owner: KubeObject) -> KubeObject:
    """Return a pod as the controller of a Job or Deployment would create it."""
    template, metadata = owner["spec"]["template"], owner["metadata"]
    named = {**template["metadata"], "name": metadata["name"], "namespace": metadata["namespace"]}
    return _unbound({"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": template["spec"]})


def _unbound(pod: KubeObject) -> KubeObject:
    spec = {name: value for name, value in pod["spec"].items() if name != "serviceAccountName"}
    return {**pod, "spec": spec}


def _needs_of(spec: KubeObject) -> Iterator[tuple[str, Decimal]]:
    """Give what one pod needs; its init containers run before the others, and not beside them."""
    yield PODS, Decimal(1)
    for when in ("requests", "limits"):
        running = _sum(container["resources"][when] for container in spec["containers"])
        before = [_sum((container["resources"][when],)) for container in spec.get("initContainers", ())]
        for resource, amount in running.items():
            yield f"{when}.{resource}", max(amount, *(first.get(resource, Decimal(0)) for first in before), Decimal(0))


def _sum(amounts: Iterable[Mapping[str, str]]) -> dict[str, Decimal]:
    total: defaultdict[str, Decimal] = defaultdict(Decimal)
    for one in amounts:
        for resource, text in one.items():
            total[resource] += parse_quantity(text)
    return total
