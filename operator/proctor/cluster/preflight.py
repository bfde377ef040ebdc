"""Whether a namespace admits what a run will need, asked before anything is made: pods that never come tell nobody why.

Each kind of pod is tried without being made (a dry run), so that whatever refuses it is heard: a RuntimeClass that is
missing, Pod Security, a LimitRange, a policy of admission. What all pods need at once is held against the namespace's
ResourceQuotas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from proctor.adapters.kube.client import Object
from proctor.adapters.kube.kinds import RESOURCE_QUOTA
from proctor.cluster.installation import Installation
from proctor.errors import Retryable
from proctor.manifests.demand import PODS, Needs, list_pods, parse_quantity, sum_needs
from proctor.manifests.scope import RunScope
from proctor.reconcile.suites_freezing import SuiteRefused

_ALIASES = {"cpu": "requests.cpu", "memory": "requests.memory", "count/pods": PODS}
"""Other names that a ResourceQuota may have for the same."""

_FIX = "raise it, or lower parallelism, sandbox.resources, or how many servers and scenarios the suite has"


class NotYet(Retryable):
    """A run can't begin, but what it lacks may come.

    Args:
        reason: machine word.
        message: what it waits for.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message, delay=2.0)
        self.reason = reason


async def check_room(installation: Installation, scope: RunScope) -> None:
    """See that a run's pods would be admitted, and have room.

    Raises:
        SuiteRefused: never, as namespace and suite are; says what to mend.
        NotYet: others need what it needs.
        Retryable: not now.
        Terminal: the operator lacks a right.
    """
    kinds = list_pods(scope)
    needs = sum_needs(kinds)
    taken = ""
    for quota in await installation.kube.list(RESOURCE_QUOTA, scope.namespace):
        for never, problem in _find_problems(quota, needs):
            if never:
                raise SuiteRefused("QuotaTooSmall", f"{problem}: {_FIX}")
            taken = taken or problem
    if taken:
        raise NotYet("QuotaExceeded", f"waiting for room: {taken}")
    for kind in kinds:
        refusal = await installation.kube.try_create(kind.pod)
        if refusal:
            reason = "RuntimeClassMissing" if "RuntimeClass" in refusal else "PodsRefused"
            raise SuiteRefused(reason, f"the namespace admits no {kind.role} pod: {refusal}")


def _find_problems(quota: Object, needs: Needs) -> Iterator[tuple[bool, str]]:
    """Give what a quota lacks, and whether it would even if nobody else were there."""
    spec, status = quota.get("spec") or {}, quota.get("status") or {}
    if spec.get("scopes") or spec.get("scopeSelector"):
        return  # it counts some pods only; the dry run tells of it
    used: Mapping[str, str] = status.get("used") or {}
    for name, text in (spec.get("hard") or {}).items():
        needed = needs.get(_ALIASES.get(name, name))
        if needed is None:
            continue
        hard = parse_quantity(text)
        taken = parse_quantity(used.get(name, "0"))
        title = f"ResourceQuota {quota['metadata']['name']} allows {name} {text}"
        if needed > hard:
            yield True, f"{title}, and the run needs {_render(needed)}"
        elif needed > hard - taken:
            yield False, f"{title}, of which {used[name]} is in use, and the run needs {_render(needed)}"


def _render(amount: Decimal) -> str:
    """Return an amount as people write it: memory in mebibytes, all else as it is."""
    mebibytes = amount / (1 << 20)
    return f"{mebibytes.normalize():f}Mi" if mebibytes >= 1 else f"{amount.normalize():f}"
