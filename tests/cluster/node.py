"""Brings the node up and takes it down."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from cluster import namespace, packages, programs, services
from cluster.certificates import write_certificates
from cluster.configuration import NODE, write_configuration
from cluster.control_groups import make_control_groups, remove_control_groups
from cluster.faults import ClusterError
from cluster.images import NEEDED_BY_PODS, load_images
from cluster.kubectl import Kubectl
from cluster.network import Network, choose_network, connect, disconnect
from cluster.places import Places
from cluster.steps import step, wait_for

GO_MODULES = ("kubernetes", "kube-router")
# Imported images stay: to unpack them anew is what would make a warm start slow.
KEPT = {"containerd"}


def up(places: Places, *, images: Iterable[str] = ()) -> None:
    """Bring the node up, with these of Proctor's images; nothing is done when it is.

    Raises:
        ClusterError: it can't be; the message says what to do.
    """
    _refuse_impossible(places)
    if is_up(places):
        return
    with step("programs of the distribution"):
        packages.install(packages.NODE)
    built = {}
    for module in GO_MODULES:
        with step(f"build {module}"):
            built[module] = programs.build(module, places)
    with step("clear what an earlier node left"):
        clear(places)
    network = _lay_out(places, built)
    with step("namespaces and network"):
        _open(places, network)
    kubectl = Kubectl(places.kubeconfig)
    with step("etcd, API server"):
        _start(places, services.CONTROL_PLANE)
        wait_for("API server", kubectl.is_ready, seconds=300, hint=str(places.logs))
    with step("container runtime"):
        _start(places, services.RUNTIME)
        wait_for("containerd", partial(_runtime_answers, places), seconds=60, hint=str(places.logs))
        _forget_containers(places)
    with step("image that every pod starts from"):
        load_images(places, (*NEEDED_BY_PODS, *images))
    with step("controllers, kubelet, service proxy, network policies"):
        _start(places, (*services.CONTROLLERS, *services.WORKERS))
        wait_for("node", partial(kubectl.node_is_ready, NODE), seconds=300, hint=str(places.logs))
        wait_for("default service account", kubectl.admits_pods, seconds=300, hint=str(places.logs))
        # The server writes its own description last, and kubectl checks objects by it.
        wait_for("description of the API", kubectl.is_described, seconds=300, hint=str(places.logs))


def _refuse_impossible(places: Places) -> None:
    if os.geteuid() != 0:
        raise ClusterError(
            "a node needs root: sudo make cluster, or KUBECONFIG=… make test-cluster for another cluster"
        )
    if places.state.is_relative_to("/run") or places.state.is_relative_to("/var/log"):
        raise ClusterError(f"PROCTOR_CLUSTER_DIR={places.state}: the node has a /run and a /var/log of its own")


def is_up(places: Places) -> bool:
    """Say whether the node runs and is ready."""
    if namespace.supervisor(places) is None or not places.kubeconfig.exists():
        return False
    kubectl = Kubectl(places.kubeconfig)
    return kubectl.is_ready() and kubectl.node_is_ready(NODE)


def _lay_out(places: Places, built: dict[str, Path]) -> Network:
    """Write every file that the programs read."""
    network = choose_network(places.name)
    for folder in (places.state, places.logs, places.logs / "pods", places.services):
        folder.mkdir(parents=True, exist_ok=True)
    write_certificates(places.state / "certificates", network)
    shutil.copy(places.state / "certificates" / "admin.kubeconfig", places.kubeconfig)
    write_configuration(places, network)
    for name, command in services.commands(places, network, built).items():
        namespace.write_service(places, name, command)
    return network


def _open(places: Places, network: Network) -> None:
    pid = namespace.enter(places)
    connect(network, pid)
    inside = partial(namespace.run_inside, pid)
    inside("mount", "--make-rshared", "/")
    # Shims, network namespaces and locks have fixed places under these; the machine's own stay untouched.
    inside("mount", "-t", "tmpfs", "-o", "mode=755", "run", "/run")
    for own, fixed in ((places.logs, "/var/log"), (places.state / "cni-results", "/var/lib/cni")):
        own.mkdir(exist_ok=True)
        Path(fixed).mkdir(exist_ok=True)
        inside("mount", "--bind", str(own), fixed)
    inside("sysctl", "--quiet", "-w", "net.ipv4.ip_forward=1")
    make_control_groups(places.name)


def _start(places: Places, names: Iterable[str]) -> None:
    namespace.control(places, "up", *names)


def _runtime_answers(places: Places) -> bool:
    return _ctr(places, "version").returncode == 0


def _forget_containers(places: Places) -> None:
    """Remove what the runtime remembers of an earlier node's containers; their processes are gone."""
    if stale := _ctr(places, "containers", "list", "--quiet").stdout.split():
        _ctr(places, "containers", "delete", *stale)


def _ctr(places: Places, *words: str) -> subprocess.CompletedProcess[str]:
    command = ["ctr", f"--address={places.containerd_socket}", "--connect-timeout=1s", "--namespace=k8s.io", *words]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def down(places: Places) -> None:
    """Take the node down, whatever state it is in; its images stay for the next one."""
    with step("end every process of the node"):
        namespace.end(places)
    with step("clear what it left"):
        clear(places)


def clear(places: Places) -> None:
    """Remove what outlives the node's namespaces: control groups, and files but for the images."""
    namespace.end(places)
    disconnect(places.name)
    remove_control_groups(places.name)
    if not places.state.exists():
        return
    for entry in places.state.iterdir():
        if entry.name in KEPT:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    shutil.rmtree(places.state / "containerd" / "io.containerd.grpc.v1.cri", ignore_errors=True)
