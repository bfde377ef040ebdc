"""What a node may leave on this machine: nothing, once it is down."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from cluster.control_groups import control_groups
from cluster.namespace import command_line, processes
from cluster.places import Places

# Chains and tables that the node's programs make; they belong into its own network namespace.
FIREWALL_MARKS = ("KUBE-ROUTER", "KUBE-POD-FW", "kube-proxy", "CNI-HOSTPORT")


def remains(places: Places) -> list[str]:
    """Return a line for each process, mount, interface, control group and firewall rule that is still there."""
    return [*_processes(places), *_mounts(places), *_interfaces(places), *_control_groups(places), *_rules()]


def _processes(places: Places) -> list[str]:
    """Find programs that were started with a path of this state folder, other than those that ask."""
    own = {os.getpid(), os.getppid()}
    found = ((pid, command_line(pid)) for pid in processes() if pid not in own)
    prefix = f"{places.state}/"
    return [f"process {pid}: {' '.join(words)[:120]}" for pid, words in found if any(prefix in word for word in words)]


def _mounts(places: Places) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [f"mount {line.split()[4]}" for line in lines if line.split()[4].startswith(f"{places.state}/")]


def _interfaces(places: Places) -> list[str]:
    return [f"interface {places.name}"] if Path("/sys/class/net", places.name).exists() else []


def _control_groups(places: Places) -> list[str]:
    return [f"control group {folder}" for folder in control_groups(places.name)]


def _rules() -> list[str]:
    listing = subprocess.run(["nft", "list", "ruleset"], check=False, capture_output=True, text=True).stdout
    return [
        f"firewall: {line.strip()}" for line in listing.splitlines() if any(mark in line for mark in FIREWALL_MARKS)
    ]
