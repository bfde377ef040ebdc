"""The canary: a pod like a sandbox, which tries what no sandbox may be able to do (S12, S13)."""

from __future__ import annotations

from dataclasses import dataclass

from proctor.manifests.pods import (
    SCRATCH,
    SCRATCH_ENVIRONMENT,
    Container,
    Pod,
    scratch_mounts,
    scratch_volume,
    variables,
)
from proctor.manifests.programs import run_agent
from proctor.manifests.scope import Amounts, KubeObject, RunScope

CANARY_ATTEMPT = "canary"
"""In the place of an attempt's id; no attempt has it."""

_AMOUNTS = Amounts(cpu="250m", memory="128Mi", storage="16Mi")
_DEADLINE_SECONDS = 120
_LOOK_SECONDS = 30
_MOST_PROCESSES = 1024
"""A limit above that is none to speak of."""
_TIMES = 3
"""So often in a row everything has to be closed: some engines close it a second or two after a pod has started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What the canary tries.

    Attributes:
        gateway: what must answer, `IP:port`.
        closed: what must not: `IP:port` for TCP, `udp:IP:port` for a name server.
        deadline_seconds: for all of it, the time to start included.
    """

    gateway: str
    closed: tuple[str, ...]
    deadline_seconds: int = _DEADLINE_SECONDS


def build_canary(scope: RunScope, probe: Probe) -> KubeObject:
    """Return the pod: labels, account, placement and hardening are a sandbox's own; its last words are JSON."""
    container = Container(
        name="agent",
        image=scope.images.sandbox,
        amounts=_AMOUNTS,
        command=(*_look(probe.gateway, probe.closed), "--count", str(_MOST_PROCESSES)),
        env=variables(SCRATCH_ENVIRONMENT),
        mounts=scratch_mounts(),
        folder=SCRATCH,
    )
    pod = Pod(
        containers=(container,),
        volumes=(scratch_volume("16Mi"),),
        account=scope.names.account,
        placement=scope.untrusted_placement,
        deadline_seconds=probe.deadline_seconds,
    )
    metadata = scope.metadata(scope.names.canary, scope.names.attempt_labels(CANARY_ATTEMPT))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod.to_spec()}


def waiting_container(
    scope: RunScope, *, answers: str, closed: tuple[str, ...], amounts: Amounts = _AMOUNTS
) -> Container:
    """Return the init container of a pod that holds strangers' code.

    It ends once the one address that the pod may reach answers and all else is closed.
    """
    return Container(
        name="wait",
        image=scope.images.sandbox,
        amounts=amounts,
        command=_look(answers, closed),
    )


def _look(gateway: str, closed: tuple[str, ...]) -> tuple[str, ...]:
    targets = [word for target in closed for word in ("--closed", target)]
    return run_agent(
        "proctor_agent.canary",
        *("--seconds", str(_LOOK_SECONDS), "--times", str(_TIMES)),
        *("--open", gateway, *targets),
    )
