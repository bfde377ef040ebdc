"""What a run asks of its namespace, before anything of it is there."""

from __future__ import annotations

from decimal import Decimal

import pytest

from proctor.manifests.demand import list_pods, parse_quantity, sum_needs
from proctor.manifests.names import Role
from support.kube_objects import EVERYTHING, scope, suite_spec


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("250m", "0.25"),
        ("2", "2"),
        ("384Mi", "402653184"),
        ("1Gi", "1073741824"),
        ("1.5G", "1500000000"),
        ("3k", "3000"),
    ],
)
def test_quantities_as_kubernetes_writes_them(text: str, amount: str) -> None:
    """P3: a quota is read as the API server reads it."""
    assert parse_quantity(text) == Decimal(amount)


def test_every_kind_of_pod_is_asked_about() -> None:
    """P3, S26: whatever refuses a pod is heard before the run begins; an account that is not there yet is no reason."""
    run = scope(suite_spec(**EVERYTHING))
    kinds = list_pods(run)
    assert {kind.role for kind in kinds} == set(Role)
    assert {kind.role: kind.count for kind in kinds}[Role.SANDBOX] == run.suite.parallelism
    assert not any("serviceAccountName" in kind.pod["spec"] for kind in kinds)
    assert all(kind.pod["metadata"]["namespace"] == run.namespace for kind in kinds)


def test_what_is_needed_at_once() -> None:
    """P3: sandboxes count as often as they run beside one another; seeding is over before they begin."""
    few, many = (sum_needs(list_pods(scope(suite_spec(**EVERYTHING, parallelism=number)))) for number in (1, 4))
    assert many["pods"] - few["pods"] == 3
    assert many["limits.cpu"] - few["limits.cpu"] >= Decimal("1.5")
    assert many["requests.memory"] - few["requests.memory"] >= 3 * parse_quantity("1Gi")
    alone = sum_needs(kind for kind in list_pods(scope(suite_spec(**EVERYTHING))) if kind.role is Role.SEED)
    assert few["pods"] > alone["pods"] == 2
