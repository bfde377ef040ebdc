"""Deployments of one pod, the Services that lead to them, and probes."""

from __future__ import annotations

from collections.abc import Mapping

from proctor.manifests.pods import Pod
from proctor.manifests.scope import KubeObject

PYTHON = ("python3", "-I")
"""Of Proctor's own images: what is installed, and nothing of the folder where it starts."""


def one_replica(metadata: KubeObject, selector: Mapping[str, str], pod: Pod) -> KubeObject:
    """Return a Deployment that runs one pod, and never two at once."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 0,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": dict(selector)},
            "template": {"metadata": {"labels": dict(metadata["labels"])}, "spec": pod.to_spec()},
        },
    }


def build_service(metadata: KubeObject, selector: Mapping[str, str], port: int) -> KubeObject:
    """Return the Service of the same name; its port is the pod's, since policies see the pod's."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "type": "ClusterIP",
            "selector": dict(selector),
            "ports": [{"port": port, "targetPort": port, "protocol": "TCP"}],
        },
    }


def http_probe(path: str, port: int, *, period: int, failures: int) -> KubeObject:
    """Return a probe that asks for a page."""
    return {"httpGet": {"path": path, "port": port}, **_often(period, failures)}


def tcp_probe(port: int, *, period: int, failures: int) -> KubeObject:
    """Return a probe that connects."""
    return {"tcpSocket": {"port": port}, **_often(period, failures)}


def command_probe(command: tuple[str, ...], *, period: int, failures: int) -> KubeObject:
    """Return a probe that runs a command inside; nothing in it is expanded."""
    return {"exec": {"command": list(command)}, **_often(period, failures)}


def _often(period: int, failures: int) -> KubeObject:
    return {"periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": failures}
