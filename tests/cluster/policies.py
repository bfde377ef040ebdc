"""The node with its network policies not enforced, as on a cluster that has no engine for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cluster import namespace
from cluster.faults import ClusterError
from cluster.places import Places

ENGINE = "kube-router"


@contextmanager
def without_policies(places: Places) -> Iterator[None]:
    """Stop the engine and remove its rules; start it again afterwards.

    Raises:
        ClusterError: the node does not run.
    """
    pid = namespace.supervisor(places)
    if pid is None:
        raise ClusterError("the node does not run: make cluster")
    namespace.control(places, "down", ENGINE)
    try:
        # The engine's own --cleanup-config ends in a panic where the kernel has no IPVS. In the node's namespace this
        # table is the engine's alone: services have tables of their own.
        for action in ("--flush", "--delete-chain"):
            namespace.run_inside(pid, "iptables", "--table=filter", action)
        yield
    finally:
        namespace.control(places, "up", ENGINE)
