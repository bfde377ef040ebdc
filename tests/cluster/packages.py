"""What comes from the distribution: programs that the node runs, and programs that build its images."""

from __future__ import annotations

import os
import shutil
import subprocess

from cluster.faults import ClusterError

# Program that must be on the path, and the Debian package that has it.
NODE = {
    "etcd": "etcd-server",
    "containerd": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "iptables": "iptables",
    "ipset": "ipset",
    "nft": "nftables",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "runsvdir": "runit",
}
IMAGES = {"buildah": "buildah", "mmdebstrap": "mmdebstrap", "/bin/busybox": "busybox-static"}
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def missing(programs: dict[str, str]) -> list[str]:
    """Return the packages of those programs that are not there."""
    path = f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}"
    return sorted({package for program, package in programs.items() if shutil.which(program, path=path) is None})


def install(programs: dict[str, str]) -> None:
    """Install what is missing, or say how to.

    Raises:
        ClusterError: something is missing, and this is not root on a Debian.
    """
    packages = missing(programs)
    if not packages:
        return
    command = ["apt-get", "install", "--yes", "--quiet=2", "--no-install-recommends", *packages]
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise ClusterError(f"missing programs; as root: {' '.join(command)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "--quiet=2"], check=True, env=environment, stdout=subprocess.DEVNULL)
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    if packages := missing(programs):
        raise ClusterError(f"still missing after installing: {' '.join(packages)}")
