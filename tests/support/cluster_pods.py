"""Makers of pods that Pod Security `restricted` admits, and what becomes of them."""

from __future__ import annotations

import time
from typing import Any

from cluster.kubectl import Kubectl

SECONDS = 120
SECURITY = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}


def busybox(
    name: str,
    *command: str,
    image: str,
    namespace: str,
    labels: dict[str, str] | None = None,
    limits: dict[str, str] | None = None,
) -> dict[str, Any]:
    """A pod with one container, which runs one command of busybox's once."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 10001,
                "runAsGroup": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "only",
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["/bin/busybox", *command],
                    "securityContext": SECURITY,
                    "resources": {"limits": limits or {"memory": "32Mi", "cpu": "100m"}},
                }
            ],
        },
    }


def wait_until(kubectl: Kubectl, name: str, *phases: str, namespace: str) -> dict[str, Any]:
    """Return a pod once it is in one of the phases."""
    deadline = time.monotonic() + SECONDS
    while True:
        pod: dict[str, Any] = kubectl.get("pod", name, f"--namespace={namespace}")
        if pod["status"]["phase"] in phases:
            return pod
        assert time.monotonic() < deadline, pod["status"]
        time.sleep(0.3)


def finish(kubectl: Kubectl, pod: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Create a pod, and return its container's end and its log."""
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    kubectl.apply(pod)
    ended = wait_until(kubectl, name, "Succeeded", "Failed", namespace=namespace)
    log = kubectl.run("logs", name, f"--namespace={namespace}").stdout
    return ended["status"]["containerStatuses"][0]["state"]["terminated"], log


def build_policy(name: str, namespace: str, **spec: Any) -> dict[str, Any]:
    """A network policy; for every pod of the namespace unless it says for which."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"podSelector": {}, **spec},
    }


def start_caller(kubectl: Kubectl, *listeners: str, image: str, namespace: str) -> None:
    """Start pods that answer on a port, and the pod `caller`, which tries each for ever and logs how it went."""
    answer = "while true; do echo hello | nc -l -p 8080; done"
    for name in listeners:
        kubectl.apply(busybox(name, "sh", "-c", answer, image=image, namespace=namespace, labels={"app": name}))
    probes = ""
    for name in listeners:
        address = wait_until(kubectl, name, "Running", namespace=namespace)["status"]["podIP"]
        call = f"nc -w 1 {address} 8080 </dev/null >/dev/null 2>&1"
        probes += f"{call} && printf '{name}=open ' || printf '{name}=closed '; "
    loop = f"while true; do {probes} echo; sleep 0.2; done"
    kubectl.apply(busybox("caller", "sh", "-c", loop, image=image, namespace=namespace, labels={"app": "caller"}))
    wait_until(kubectl, "caller", "Running", namespace=namespace)


def await_reach(kubectl: Kubectl, namespace: str, **expected: str) -> None:
    """Wait until the last whole line of `caller` says `open` or `closed` of each listener, as expected."""
    wanted = " ".join(f"{name}={state}" for name, state in expected.items())
    deadline = time.monotonic() + SECONDS
    while True:
        log = kubectl.run("logs", "caller", f"--namespace={namespace}", "--tail=1").stdout.strip()
        if log == wanted:
            return
        assert time.monotonic() < deadline, f"wanted {wanted}, saw {log}"
        time.sleep(0.3)
