"""The chart's own operator on a real cluster, with a namespace that it serves."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from cluster.kubectl import Kubectl
from cluster.running import RunningCluster
from support.chart import CHART, Helm, values_for
from support.namespaces import open_namespaces

CRDS = Path(__file__).resolve().parents[2] / "crds"
PATIENCE_SECONDS = 600
"""For what takes seconds on a node that nobody else uses, and minutes on a busy one."""
_LOOK_SECONDS = 1.0

_T = TypeVar("_T")


def await_it(what: str, look: Callable[[], _T | None], *, seconds: float = PATIENCE_SECONDS) -> _T:
    """Look again and again, and return the first thing that is seen."""
    deadline = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds:.0f} s"
        time.sleep(_LOOK_SECONDS)
    return seen


@dataclass(frozen=True)
class Installed:
    """An operator of the chart, and the namespace that it serves.

    Attributes:
        release: its namespace.
        namespace: of the runs.
    """

    kubectl: Kubectl
    release: str
    namespace: str

    def status(self, run: str) -> dict[str, Any]:
        """Return a run's status; empty before it has one."""
        body: dict[str, Any] = self.kubectl.get("evalrun", run, f"--namespace={self.namespace}")
        return body.get("status") or {}

    def kill_operator(self) -> None:
        """End its process without a word, as a node that fails does."""
        pods = ("pods", f"--namespace={self.release}", "--selector=app.kubernetes.io/component=operator")
        self.kubectl.run("delete", *pods, "--grace-period=0", "--force")


@contextlib.contextmanager
def install(cluster: RunningCluster, purpose: str, *more: str, **changes: Any) -> Iterator[Installed]:
    """Install the chart into namespaces of its own; all of it goes afterwards.

    Args:
        cluster: where.
        purpose: begins the namespaces' names.
        more: other namespaces with runs, which are there.
        changes: other values of the chart.
    """
    kubectl = cluster.kubectl
    with open_namespaces(kubectl) as make_namespace:
        release, namespace = make_namespace(f"{purpose}-operator"), make_namespace(purpose)
        kubectl.run("apply", "--server-side", "--force-conflicts", f"--filename={CRDS}")
        helm = Helm(kubectl.kubeconfig)
        values = values_for(cluster.images, namespace) | {"crds": {"install": False}, "web": {"enabled": False}}
        values["runNamespaces"] += [{"name": name, "create": False} for name in more]
        values |= changes
        helm.run("install", "proctor", str(CHART), f"--namespace={release}", values=values)
        try:
            yield Installed(kubectl, release, namespace)
        finally:
            helm.run("uninstall", "proctor", f"--namespace={release}", check=False)
