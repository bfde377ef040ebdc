"""Configuration files of the node's programs, each odd value with its reason."""

from __future__ import annotations

import json
from pathlib import Path

from cluster.network import Network
from cluster.places import Places

NODE = "node1"
PAUSE = "localhost/proctor/pause:dev"
# A tenth of what a fork bomb would need to hurt the machine, and more than any agent has been seen to use.
PIDS_PER_POD = 512
CONTAINERD = """\
version = 2
root = "{state}/containerd"
state = "{state}/containerd-run"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.internal.v1.opt",
  "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]

[grpc]
address = "{socket}"

[plugins."io.containerd.grpc.v1.cri"]
# There is no registry: the image is imported.
sandbox_image = "{pause}"
# Root may lack CAP_SYS_RESOURCE, as in most build machines, and then no process may be favoured.
restrict_oom_score_adj = true
disable_apparmor = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{state}/cni"

[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "runc"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
"""


def write_configuration(places: Places, network: Network) -> None:
    """Write what each program is told by a file."""
    state = places.state
    toml = CONTAINERD.format(state=state, socket=places.containerd_socket, pause=PAUSE)
    (state / "containerd.toml").write_text(toml)
    (state / "cni").mkdir()
    _write(state / "cni" / "10-pods.conflist", _pod_network(network, state))
    _write(state / "kubelet.json", _kubelet(places, network))
    _write(state / "kube-proxy.json", _kube_proxy(places, network))


def _write(file: Path, document: object) -> None:
    file.write_text(json.dumps(document, indent=1))


def _pod_network(network: Network, state: Path) -> dict[str, object]:
    bridge = {
        "type": "bridge",
        "bridge": "pods",
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": str(state / "addresses"),
            "ranges": [[{"subnet": network.pods}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    return {
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}],
    }


def _kubelet(places: Places, network: Network) -> dict[str, object]:
    certificates = places.state / "certificates"
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(certificates / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(certificates / "server.crt"),
        "tlsPrivateKeyFile": str(certificates / "server.key"),
        "containerRuntimeEndpoint": f"unix://{places.containerd_socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{places.name}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "podPidsLimit": PIDS_PER_POD,
        "maxPods": 200,
        "clusterDomain": "cluster.local",
        "clusterDNS": [network.node],
        "resolvConf": "/etc/resolv.conf",
        "podLogsDir": str(places.logs / "pods"),
        "volumePluginDir": str(places.state / "volume-plugins"),
        # The machine's disk is not this cluster's to tidy: images are few, and their import is what takes long.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "healthzPort": 10248,
        "registryPullQPS": 0,
        "eventRecordQPS": 0,
    }


def _kube_proxy(places: Places, network: Network) -> dict[str, object]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": network.pods,
        "hostnameOverride": NODE,
        "oomScoreAdj": 0,
        "clientConnection": {"kubeconfig": str(places.state / "certificates" / "kube-proxy.kubeconfig")},
        # The kernel's table of connections is the machine's; a namespace may not size it.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
