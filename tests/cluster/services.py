"""The node's programs and how each is started."""

from __future__ import annotations

from pathlib import Path

from cluster.configuration import NODE
from cluster.network import Network
from cluster.places import Places

CONTROL_PLANE = ("etcd", "kube-apiserver")
CONTROLLERS = ("kube-controller-manager", "kube-scheduler")
RUNTIME = ("containerd",)
WORKERS = ("kubelet", "kube-proxy", "kube-router")


def commands(places: Places, network: Network, programs: dict[str, Path]) -> dict[str, list[str]]:
    """Return each service's command line.

    Args:
        places: the cluster's folders.
        network: its addresses.
        programs: folder of the built programs, by Go module folder.
    """
    kubernetes = programs["kubernetes"]
    certificates = places.state / "certificates"
    return {
        "etcd": ["etcd", *_etcd(places)],
        "kube-apiserver": [str(kubernetes / "kube-apiserver"), *_api_server(certificates, network)],
        "kube-controller-manager": [
            str(kubernetes / "kube-controller-manager"),
            *_controller_manager(certificates, network),
        ],
        "kube-scheduler": [str(kubernetes / "kube-scheduler"), *_controller(certificates, "kube-scheduler")],
        "containerd": ["containerd", f"--config={places.state}/containerd.toml"],
        "kubelet": [str(kubernetes / "kubelet"), *_kubelet(places, network)],
        "kube-proxy": [str(kubernetes / "kube-proxy"), f"--config={places.state}/kube-proxy.json"],
        "kube-router": [str(programs["kube-router"] / "kube-router"), *_policies(certificates)],
    }


def _etcd(places: Places) -> list[str]:
    # Objects needn't survive this machine's power: waiting for the disk is most of what writing one would take.
    return [f"--data-dir={places.state}/etcd", "--unsafe-no-fsync", "--auto-compaction-retention=1"]


def _api_server(certificates: Path, network: Network) -> list[str]:
    return [
        "--etcd-servers=http://127.0.0.1:2379",
        f"--advertise-address={network.node}",
        "--secure-port=6443",
        f"--service-cluster-ip-range={network.services}",
        "--allow-privileged=true",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--client-ca-file={certificates}/ca.crt",
        f"--tls-cert-file={certificates}/server.crt",
        f"--tls-private-key-file={certificates}/server.key",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={certificates}/service-accounts.key",
        f"--service-account-signing-key-file={certificates}/service-accounts.key",
        f"--kubelet-certificate-authority={certificates}/ca.crt",
        f"--kubelet-client-certificate={certificates}/admin.crt",
        f"--kubelet-client-key={certificates}/admin.key",
        # The node's name does not resolve.
        "--kubelet-preferred-address-types=InternalIP",
    ]


def _controller(certificates: Path, name: str) -> list[str]:
    kubeconfig = f"{certificates}/{name}.kubeconfig"
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--authentication-tolerate-lookup-failure=true",
        "--leader-elect=false",
    ]


def _controller_manager(certificates: Path, network: Network) -> list[str]:
    return [
        *_controller(certificates, "kube-controller-manager"),
        f"--cluster-cidr={network.pods}",
        f"--service-cluster-ip-range={network.services}",
        f"--root-ca-file={certificates}/ca.crt",
        f"--service-account-private-key-file={certificates}/service-accounts.key",
        "--use-service-account-credentials=true",
    ]


def _kubelet(places: Places, network: Network) -> list[str]:
    return [
        f"--config={places.state}/kubelet.json",
        f"--kubeconfig={places.state}/certificates/kubelet.kubeconfig",
        f"--root-dir={places.state}/kubelet",
        f"--hostname-override={NODE}",
        f"--node-ip={network.node}",
    ]


def _policies(certificates: Path) -> list[str]:
    return [
        f"--kubeconfig={certificates}/kube-router.kubeconfig",
        "--run-firewall=true",
        "--run-router=false",
        "--run-service-proxy=false",
        "--run-loadbalancer=false",
        "--metrics-port=0",
        "--health-port=0",
        f"--hostname-override={NODE}",
    ]
