"""Addresses of one cluster, and the one cable between it and this machine."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass

from cluster.faults import ClusterError

NUMBERS = range(100)


@dataclass(frozen=True)
class Network:
    """The addresses of the cluster with a number, so that several can run on one machine.

    Args:
        interface: name of this machine's end of the cable.
        number: which.
    """

    interface: str
    number: int

    @property
    def machine(self) -> str:
        """This machine, as pods see it."""
        return f"10.189.{self.number}.1"

    @property
    def node(self) -> str:
        """The node, as this machine and pods see it."""
        return f"10.189.{self.number}.2"

    @property
    def pods(self) -> str:
        """Where pods get their addresses from."""
        return f"10.188.{self.number}.0/24"

    @property
    def services(self) -> str:
        """Where services get theirs from."""
        return f"10.190.{self.number}.0/24"

    @property
    def kubernetes_service(self) -> str:
        """The API server, as pods see it."""
        return f"10.190.{self.number}.1"

    @property
    def api_server(self) -> str:
        """Where the API server is reached."""
        return f"https://{self.node}:6443"


def choose_network(interface: str) -> Network:
    """Return the first whose addresses no interface of this machine has.

    Raises:
        ClusterError: too many clusters run.
    """
    links = json.loads(subprocess.run(["ip", "-json", "address"], check=True, capture_output=True).stdout)
    taken = {address.get("local") for link in links for address in link["addr_info"]}
    for number in NUMBERS:
        if (network := Network(interface, number)).machine not in taken:
            return network
    raise ClusterError(f"{len(NUMBERS)} clusters run on this machine; make cluster-down one of them")


def connect(network: Network, pid: int) -> None:
    """Lay the cable from this machine into the network namespace of a process."""
    _ip(f"link add {network.interface} type veth peer name eth0 netns {pid}")
    _ip(f"address add {network.machine}/30 dev {network.interface}")
    _ip(f"link set {network.interface} up")
    for command in (
        "link set lo up",
        f"address add {network.node}/30 dev eth0",
        "link set eth0 up",
        f"route add default via {network.machine}",
    ):
        _ip(command, inside=pid)
    _ip(f"route add {network.pods} via {network.node}")
    _ip(f"route add {network.services} via {network.node}")


def disconnect(interface: str) -> None:
    """Remove this machine's end of the cable at once: the kernel takes its time to end a network namespace."""
    subprocess.run(["ip", "link", "delete", interface], check=False, capture_output=True)


def _ip(words: str, *, inside: int | None = None) -> None:
    entry = [] if inside is None else ["nsenter", f"--net=/proc/{inside}/ns/net"]
    done = subprocess.run([*entry, "ip", *words.split()], check=False, capture_output=True, text=True)
    if done.returncode:
        raise ClusterError(f"ip {words}: {done.stderr.strip()}")
