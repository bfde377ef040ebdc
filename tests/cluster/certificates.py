"""The cluster's own authority, and the identities it vouches for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import trustme

from cluster.network import Network


@dataclass(frozen=True)
class Identity:
    """A client of the API server.

    Args:
        name: its user.
        group: its group, which says what it may do.
    """

    name: str
    group: str


# File name → who presents it. The groups and names are those that the API server's own roles are bound to.
CLIENTS = {
    "admin": Identity("kubernetes-admin", "system:masters"),
    "kube-controller-manager": Identity("system:kube-controller-manager", "proctor"),
    "kube-scheduler": Identity("system:kube-scheduler", "proctor"),
    "kube-proxy": Identity("system:kube-proxy", "proctor"),
    "kube-router": Identity("kube-router", "system:masters"),
    "coredns": Identity("coredns", "system:masters"),
    "kubelet": Identity("system:node:node1", "system:nodes"),
}
SERVER_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost", "node1")


def write_certificates(folder: Path, network: Network) -> None:
    """Write the authority, the servers' and clients' certificates, and one kubeconfig per client."""
    folder.mkdir(mode=0o700)
    authority = trustme.CA(organization_name="proctor test cluster")
    authority.cert_pem.write_to_path(str(folder / "ca.crt"))
    addresses = [network.node, network.kubernetes_service, "127.0.0.1"]
    _write(folder, "server", authority.issue_cert(*addresses, *SERVER_NAMES, common_name="kube-apiserver"))
    # Only its key counts: it signs the tokens of service accounts.
    _write(folder, "service-accounts", authority.issue_cert("service-accounts"))
    for file, identity in CLIENTS.items():
        leaf = authority.issue_cert(
            identity.name.replace(":", "-"), common_name=identity.name, organization_name=identity.group
        )
        _write(folder, file, leaf)
        text = json.dumps(_kubeconfig(folder, file, network), indent=1)
        (folder / f"{file}.kubeconfig").write_text(text)


def _write(folder: Path, name: str, leaf: trustme.LeafCert) -> None:
    leaf.cert_chain_pems[0].write_to_path(str(folder / f"{name}.crt"))
    leaf.private_key_pem.write_to_path(str(folder / f"{name}.key"))


def _kubeconfig(folder: Path, client: str, network: Network) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "proctor",
        "clusters": [
            {
                "name": "proctor",
                "cluster": {"server": network.api_server, "certificate-authority": str(folder / "ca.crt")},
            }
        ],
        "users": [
            {
                "name": client,
                "user": {
                    "client-certificate": str(folder / f"{client}.crt"),
                    "client-key": str(folder / f"{client}.key"),
                },
            }
        ],
        "contexts": [{"name": "proctor", "context": {"cluster": "proctor", "user": client}}],
    }
