"""Network policies are what the engine enforces: with it stopped, a deny-all changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.places import Places
from cluster.policies import without_policies
from cluster.running import RunningCluster
from support.cluster_pods import await_reach, build_policy, start_caller

pytestmark = [pytest.mark.cluster, pytest.mark.own_node]


def test_a_policy_without_an_engine_closes_nothing(cluster: RunningCluster, make_namespace: Any) -> None:
    """The case that the canary must catch (S12): the policy is there, and the way is open."""
    kubectl, image = cluster.kubectl, cluster.images["busybox"]
    namespace = make_namespace("engine")
    start_caller(kubectl, "friend", image=image, namespace=namespace)
    await_reach(kubectl, namespace, friend="open")
    kubectl.apply(build_policy("deny", namespace, policyTypes=["Ingress", "Egress"]))
    await_reach(kubectl, namespace, friend="closed")
    with without_policies(Places.from_environment()):
        await_reach(kubectl, namespace, friend="open")
    await_reach(kubectl, namespace, friend="closed")
