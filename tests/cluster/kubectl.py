"""The `kubectl` of this environment, pointed at one cluster."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.faults import ClusterError

_UNREACHED = re.compile(r"connection to the server \S+ was refused|TLS handshake timeout|dial tcp")
_PATIENCE_SECONDS, _PAUSE_SECONDS = 30.0, 1.0

PROGRAM = Path(sys.executable).with_name("kubectl")


@dataclass(frozen=True)
class Kubectl:
    """One cluster's command line.

    Args:
        kubeconfig: how it is reached.
    """

    kubeconfig: Path

    @property
    def program(self) -> str:
        """The one beside this Python, or the one on the path."""
        found = shutil.which("kubectl", path=str(PROGRAM.parent)) or shutil.which("kubectl")
        if found is None:
            raise ClusterError("no kubectl: make .venv/.dev installs it")
        return found

    def run(self, *words: str, stdin: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run one command.

        Raises:
            ClusterError: it failed, and `check` is set; a server that is not reached at all is tried for some time.
        """
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            done = subprocess.run(
                [self.program, f"--kubeconfig={self.kubeconfig}", *words],
                check=False,
                capture_output=True,
                text=True,
                input=stdin,
            )
            if not (check and done.returncode and _UNREACHED.search(done.stderr)) or time.monotonic() > until:
                break
            time.sleep(_PAUSE_SECONDS)
        if check and done.returncode:
            raise ClusterError(f"kubectl {' '.join(words)}: {done.stderr.strip()}")
        return done

    def get(self, *words: str) -> Any:
        """Return an object as JSON."""
        return json.loads(self.run("get", *words, "--output=json").stdout)

    def apply(self, *objects: dict[str, Any]) -> None:
        """Create or change objects."""
        self.run("apply", "--filename=-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def is_ready(self) -> bool:
        """Say whether the API server answers that it is ready."""
        return self.run("get", "--raw=/readyz", "--request-timeout=10s", check=False).returncode == 0

    def is_described(self) -> bool:
        """Say whether the API server serves the description by which objects are checked."""
        return self.run("get", "--raw=/openapi/v2", "--request-timeout=60s", check=False).returncode == 0

    def serves(self, *definitions: str) -> bool:
        """Say whether the API server serves what custom resource definitions define.

        Not ``kubectl wait``, which gives up on an object that has no conditions yet.
        """
        status = [self.get("crd", name).get("status", {}) for name in definitions]
        conditions = [{each["type"]: each["status"] for each in one.get("conditions") or []} for one in status]
        return all(one.get("Established") == "True" for one in conditions)

    def admits_pods(self) -> bool:
        """Say whether the default namespace has the account that its pods run under."""
        return self.run("get", "serviceaccount", "default", "--namespace=default", check=False).returncode == 0

    def node_is_ready(self, name: str) -> bool:
        """Say whether a node reports Ready."""
        done = self.run("get", "node", name, "--output=json", "--request-timeout=10s", check=False)
        if done.returncode:
            return False
        conditions = json.loads(done.stdout)["status"].get("conditions", [])
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
