"""The cluster itself keeps the promises on which Proctor's isolation rests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster.kubectl import Kubectl
from cluster.running import RunningCluster
from support.cluster_pods import await_reach, build_policy, busybox, finish, start_caller

pytestmark = pytest.mark.cluster


def test_every_node_is_ready(kubectl: Kubectl) -> None:
    """A real API server has a real kubelet behind it."""
    nodes = [item["metadata"]["name"] for item in kubectl.get("nodes")["items"]]
    assert nodes
    assert all(kubectl.node_is_ready(name) for name in nodes)


def test_a_pod_runs_from_an_image_by_digest(cluster: RunningCluster, make_namespace: Any) -> None:
    """An image that is named by its digest is found without a registry, in a namespace that is `restricted` (S27)."""
    image = cluster.images["busybox"]
    assert "@sha256:" in image
    pod = busybox("hello", "id", "-u", image=image, namespace=make_namespace("digest"))
    end, log = finish(cluster.kubectl, pod)
    assert (end["exitCode"], log) == (0, "10001\n")


def test_a_pod_with_privileges_is_refused(cluster: RunningCluster, make_namespace: Any) -> None:
    """Pod Security is enforced where the labels ask for it."""
    pod = busybox("greedy", "true", image=cluster.images["busybox"], namespace=make_namespace("restricted"))
    pod["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    done = cluster.kubectl.run("apply", "--filename=-", stdin=json.dumps(pod), check=False)
    assert done.returncode
    assert "privileged" in done.stderr


def test_memory_is_limited(cluster: RunningCluster, make_namespace: Any) -> None:
    """The kernel ends a container at its limit, and the pod's status says so (S23)."""
    pod = busybox("hungry", "tail", "/dev/zero", image=cluster.images["busybox"], namespace=make_namespace("memory"))
    end, _ = finish(cluster.kubectl, pod)
    assert end["reason"] == "OOMKilled"


def test_processes_are_limited(cluster: RunningCluster, make_namespace: Any) -> None:
    """A pod can't start processes without end (S23)."""
    script = "i=0; while [ $i -lt 1000 ]; do /bin/busybox sleep 60 & i=$((i+1)); done; echo all"
    limits = {"memory": "512Mi", "cpu": "200m"}
    image, namespace = cluster.images["busybox"], make_namespace("processes")
    pod = busybox("bomb", "sh", "-c", script, image=image, namespace=namespace, limits=limits)
    end, log = finish(cluster.kubectl, pod)
    assert end["exitCode"]
    assert "can't fork" in log
    assert "all" not in log


def test_policies_close_and_open(cluster: RunningCluster, make_namespace: Any) -> None:
    """Without a policy pods talk; deny-all closes; an allowance opens that way alone (S9)."""
    kubectl, namespace = cluster.kubectl, make_namespace("policies")
    start_caller(kubectl, "friend", "stranger", image=cluster.images["busybox"], namespace=namespace)
    await_reach(kubectl, namespace, friend="open", stranger="open")
    kubectl.apply(build_policy("deny", namespace, policyTypes=["Ingress", "Egress"]))
    await_reach(kubectl, namespace, friend="closed", stranger="closed")
    friend, caller = ({"podSelector": {"matchLabels": {"app": name}}} for name in ("friend", "caller"))
    kubectl.apply(
        build_policy("allow-out", namespace, **caller, egress=[{"to": [friend]}], policyTypes=["Egress"]),
        build_policy("allow-in", namespace, **friend, ingress=[{"from": [caller]}], policyTypes=["Ingress"]),
    )
    await_reach(kubectl, namespace, friend="open", stranger="closed")
