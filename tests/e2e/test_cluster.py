"""The cluster itself keeps the promises on which Proctor's isolation rests."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from cluster.kubectl import Kubectl
from cluster.running import RunningCluster
from support.cluster_pods import SECONDS, busybox, finish, wait_until

pytestmark = pytest.mark.cluster


def _policy(name: str, namespace: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"podSelector": {}, **spec},
    }


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
    limits = {"memory": "512Mi", "cpu": "1"}
    image, namespace = cluster.images["busybox"], make_namespace("processes")
    pod = busybox("bomb", "sh", "-c", script, image=image, namespace=namespace, limits=limits)
    end, log = finish(cluster.kubectl, pod)
    assert end["exitCode"]
    assert "can't fork" in log
    assert "all" not in log


def test_policies_close_and_open(cluster: RunningCluster, make_namespace: Any) -> None:
    """Without a policy pods talk; deny-all closes; an allowance opens that way alone (S9)."""
    kubectl, image = cluster.kubectl, cluster.images["busybox"]
    namespace = make_namespace("policies")
    serve = "while true; do echo hello | nc -l -p 8080; done"
    for name in ("friend", "stranger"):
        labels = {"app": name}
        kubectl.apply(busybox(name, "sh", "-c", serve, image=image, namespace=namespace, labels=labels))
    addresses = {
        name: wait_until(kubectl, name, "Running", namespace=namespace)["status"]["podIP"]
        for name in ("friend", "stranger")
    }
    loop = f"while true; do {_probes(addresses)} sleep 0.2; done"
    kubectl.apply(busybox("caller", "sh", "-c", loop, image=image, namespace=namespace, labels={"app": "caller"}))
    wait_until(kubectl, "caller", "Running", namespace=namespace)

    _await_line(kubectl, namespace, {"friend": "open", "stranger": "open"})
    kubectl.apply(_policy("deny", namespace, policyTypes=["Ingress", "Egress"]))
    _await_line(kubectl, namespace, {"friend": "closed", "stranger": "closed"})
    ways = {"podSelector": {"matchLabels": {"app": "friend"}}}
    caller = {"podSelector": {"matchLabels": {"app": "caller"}}}
    kubectl.apply(
        _policy(
            "allow-out", namespace, podSelector=caller["podSelector"], egress=[{"to": [ways]}], policyTypes=["Egress"]
        ),
        _policy("allow-in", namespace, **ways, ingress=[{"from": [caller]}], policyTypes=["Ingress"]),
    )
    _await_line(kubectl, namespace, {"friend": "open", "stranger": "closed"})


def _probes(addresses: dict[str, str]) -> str:
    return (
        " ".join(
            f"nc -w 1 {address} 8080 </dev/null >/dev/null 2>&1 && printf '{name}=open ' || printf '{name}=closed ';"
            for name, address in addresses.items()
        )
        + " echo;"
    )


def _await_line(kubectl: Kubectl, namespace: str, expected: dict[str, str]) -> None:
    """Wait until the caller's last whole line says what is expected."""
    wanted = " ".join(f"{name}={state}" for name, state in expected.items())
    deadline = time.monotonic() + SECONDS
    while True:
        log = kubectl.run("logs", "caller", f"--namespace={namespace}", "--tail=1").stdout.strip()
        if log == wanted:
            return
        assert time.monotonic() < deadline, f"wanted {wanted}, saw {log}"
        time.sleep(0.3)
