"""Where the cluster keeps what it needs: state that ends with it, and what was built and stays."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@dataclass(frozen=True)
class Places:
    """The folders of one cluster.

    Args:
        state: everything that belongs to the running node.
        cache: programs and images that outlive it, by version.
    """

    state: Path
    cache: Path

    @classmethod
    def from_environment(cls) -> Places:
        """Read `PROCTOR_CLUSTER_DIR` and `PROCTOR_CLUSTER_CACHE`."""
        caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return cls(
            state=Path(os.environ.get("PROCTOR_CLUSTER_DIR") or "/var/lib/proctor-cluster").resolve(),
            cache=Path(os.environ.get("PROCTOR_CLUSTER_CACHE") or Path(caches) / "proctor-cluster").resolve(),
        )

    @property
    def name(self) -> str:
        """What the interface and the control groups of this cluster are called."""
        return f"proctor-{hashlib.sha256(str(self.state).encode()).hexdigest()[:6]}"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's way in."""
        return self.state / "kubeconfig"

    @property
    def services(self) -> Path:
        """One folder per supervised program."""
        return self.state / "services"

    @property
    def logs(self) -> Path:
        """One log per program, and the pods' logs."""
        return self.state / "logs"

    @property
    def containerd_socket(self) -> Path:
        """The node's own container runtime."""
        return self.state / "containerd.sock"
