"""A node comes up, survives its own death, and leaves nothing: in a state folder of its own, beside the shared node."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster import namespace, node
from cluster.configuration import NODE
from cluster.control_groups import control_groups
from cluster.kubectl import Kubectl
from cluster.places import Places
from cluster.remains import remains
from support.cluster_pods import busybox, wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.own_node]

BUSYBOX = "localhost/proctor/busybox:dev"


@pytest.fixture
def places() -> Iterator[Places]:
    """Folders of a second node; it is down before and after."""
    shared = Places.from_environment()
    second = Places(state=shared.state.with_name(f"{shared.state.name}-lifetime"), cache=shared.cache)
    yield second
    node.down(second)


def _machine() -> tuple[str, str, set[str]]:
    """Return this machine's firewall rules, mounts and interfaces, without what counts and changes by itself."""
    rules = subprocess.run(["nft", "--stateless", "list", "ruleset"], check=True, capture_output=True, text=True).stdout
    interfaces = {path.name for path in Path("/sys/class/net").iterdir()}
    return rules, Path("/proc/self/mounts").read_text(), interfaces


def _run_pod(places: Places) -> None:
    kubectl = Kubectl(places.kubeconfig)
    kubectl.apply(busybox("runs", "sleep", "600", image=BUSYBOX, namespace="default"))
    wait_until(kubectl, "runs", "Running", namespace="default")


def _kill_everything(places: Places) -> None:
    """As a machine's owner would who knows nothing of `cluster-down`: every process at once, the supervisor last."""
    supervisor = namespace.supervisor(places)
    assert supervisor is not None
    home = Path(f"/proc/{supervisor}/ns/pid").readlink()
    for pid in reversed(namespace.processes()):
        if _lives_in(pid, home):
            os.kill(pid, signal.SIGKILL)


def _lives_in(pid: int, home: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/ns/pid").readlink() == home
    except OSError:
        return False


def test_a_node_that_was_killed_starts_again_and_leaves_nothing(places: Places) -> None:
    """A node starts cleanly after everything was killed; no process, mount, interface or rule after down."""
    before = _machine()
    node.up(places, images=("busybox",))
    _run_pod(places)
    assert control_groups(places.name)
    assert places.name in _machine()[2]
    assert remains(places), "a running node is seen by the check that is to find nothing later"

    _kill_everything(places)
    node.up(places, images=("busybox",))
    assert Kubectl(places.kubeconfig).node_is_ready(NODE)
    assert Kubectl(places.kubeconfig).get("pods", "--all-namespaces")["items"] == []
    _run_pod(places)

    node.down(places)
    assert remains(places) == []
    assert _machine() == before
    assert namespace.supervisor(places) is None
