"""The quickstart's suite on a real cluster: by the chart's own operator, which is killed once in every phase."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.running import RunningCluster
from support.installed import Installed, install

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 900
SCORES = {
    ("mcp-clickhouse", "loudest"): "0.0000",
    ("mcp-clickhouse", "newest"): "0.8333",
    ("clickscope", "loudest"): "0.0000",
    ("clickscope", "newest"): "0.8333",
}
"""As `proctor run examples/quickstart.yaml` has them, and the README shows."""


@pytest.fixture
def installed(cluster: RunningCluster) -> Iterator[Installed]:
    with install(cluster, "quickstart") as found:
        yield found


def test_the_same_verdict_and_scores_though_the_operator_is_killed_in_every_phase(installed: Installed) -> None:
    """M-B1, P3, P29: Pass with the scores of one machine; no finalizer, nothing left, a second pass is empty."""
    kubectl, namespace = installed.kubectl, f"--namespace={installed.namespace}"
    kubectl.run("apply", namespace, f"--filename={ROOT / 'examples' / 'quickstart.yaml'}")
    run = wait_for_run(installed)
    killed_in = drive(installed, run)
    body = kubectl.get("evalrun", run, namespace)
    status = body["status"]
    assert (status["verdict"], status["reason"]) == ("Pass", "WithinMaxDrop"), status["summary"]
    scores = {(arm["server"], arm["model"]): arm["score"]["mean"] for arm in status["arms"]}
    assert scores == SCORES
    assert status["controls"] == {"oracle": "1.0000", "noop": "0.0000"}
    assert status["cells"]["graded"] == status["cells"]["total"] == 16
    assert killed_in >= {"Seeding", "Enforcing", "Controls", "Running"}
    assert "finalizers" not in body["metadata"]
    assert not any(name.startswith("kopf") for name in body["metadata"].get("annotations", {}))
    wait_until_released(installed)
    check_second_pass_empty(installed, run)


def wait_for_run(installed: Installed) -> str:
    """Return the run that the suite makes, or make one of a suite that makes none."""
    namespace = f"--namespace={installed.namespace}"
    for _ in range(30):
        runs = installed.kubectl.get("evalruns", namespace)["items"]
        if runs:
            return str(runs[0]["metadata"]["name"])
        time.sleep(1)
    installed.kubectl.apply(
        {
            "apiVersion": "proctor.dev/v1alpha1",
            "kind": "EvalRun",
            "metadata": {"name": "quickstart-1", "namespace": installed.namespace},
            "spec": {"suiteRef": {"name": "quickstart"}},
        }
    )
    return "quickstart-1"


def drive(installed: Installed, run: str) -> set[str]:
    """Wait for the verdict, and kill the operator once in every phase; return the phases."""
    killed_in: set[str] = set()
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        status = installed.status(run)
        if status.get("verdict", "Pending") != "Pending":
            return killed_in
        phase = status.get("phase", "")
        if phase and phase not in killed_in:
            killed_in.add(phase)
            installed.kill_operator()
        time.sleep(1)
    raise AssertionError(f"no verdict after {PATIENCE_SECONDS} s: {installed.status(run)}")


def wait_until_released(installed: Installed) -> None:
    """Wait until nothing of the run runs any more."""
    for _ in range(90):
        left = installed.kubectl.get("pods,jobs,deployments,services", f"--namespace={installed.namespace}")["items"]
        if not left:
            return
        time.sleep(1)
    raise AssertionError(f"left running: {[item['metadata']['name'] for item in left]}")


def check_second_pass_empty(installed: Installed, run: str) -> None:
    """See that an operator that starts anew, and looks at everything twice, changes nothing of a finished run."""
    namespace = f"--namespace={installed.namespace}"
    before = installed.kubectl.get("evalrun", run, namespace)["metadata"]["resourceVersion"]
    installed.kill_operator()
    time.sleep(25)
    assert installed.kubectl.get("evalrun", run, namespace)["metadata"]["resourceVersion"] == before
