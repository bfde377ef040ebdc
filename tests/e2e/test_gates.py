"""A suite on a real API server, from its birth to its verdict, and every way there is to wait for it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cluster.kubectl import Kubectl
from proctor.adapters.kube.connecting import open_kube
from proctor.api.run import Verdict
from proctor.web.app import build_app
from support.gated import SUITE, end_run, make_passes, put_suite
from support.readers import TOKEN
from support.recipes_of_gates import GATES

pytestmark = pytest.mark.cluster

CRDS = Path(__file__).parents[2] / "crds"


@pytest.fixture(scope="module", autouse=True)
def crds(kubectl: Kubectl) -> None:
    options = ("--server-side", "--force-conflicts", "--field-manager=test-crds")
    kubectl.run("apply", *options, f"--filename={CRDS}")


@pytest.fixture
def namespace(make_namespace: Callable[[str], str]) -> str:
    return make_namespace("gates")


def suite_status(kubectl: Kubectl, namespace: str) -> Any:
    return kubectl.get("evs", SUITE, f"--namespace={namespace}")["status"]


def proctor_wait(kubectl: Kubectl, namespace: str, *words: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "proctor", "wait", *words, "-n", namespace, "--timeout", "60"]
    environment = os.environ | {"KUBECONFIG": str(kubectl.kubeconfig)}
    return subprocess.run(program, env=environment, capture_output=True, text=True, check=False, timeout=120)


def wait_with_kubectl(kubectl: Kubectl, namespace: str, name: str) -> int:
    environment = os.environ | {
        "KUBECONFIG": str(kubectl.kubeconfig),
        "PATH": f"{Path(kubectl.program).parent}:{os.environ['PATH']}",
        "TIMEOUT": "30s",
    }
    script = str(GATES / "kubectl-wait.sh")
    return subprocess.run(["sh", script, namespace, name], env=environment, check=False, timeout=90).returncode


@pytest.mark.parametrize(("verdict", "code"), [(Verdict.PASS, 0), (Verdict.FAIL, 1)])
def test_a_gate_from_birth_to_verdict(verdict: Verdict, code: int, kubectl: Kubectl, namespace: str) -> None:
    """One run per generation; not Ready until it has ended; then every way to wait agrees."""
    put_suite(kubectl, namespace)
    assert suite_status(kubectl, namespace)["observedGeneration"] == -1
    make_passes(kubectl, namespace)
    (run,) = kubectl.get("evr", f"--namespace={namespace}")["items"]
    name = run["metadata"]["name"]
    assert run["metadata"]["ownerReferences"][0]["name"] == SUITE
    status = suite_status(kubectl, namespace)
    assert (status["observedGeneration"], status["gate"]["verdict"], status["gate"]["runRef"]) == (-1, "Pending", name)
    end_run(kubectl, namespace, name, verdict)
    make_passes(kubectl, namespace)
    status = suite_status(kubectl, namespace)
    assert (status["observedGeneration"], status["gate"]["verdict"]) == (1, verdict)
    assert len(kubectl.get("evr", f"--namespace={namespace}")["items"]) == 1
    assert proctor_wait(kubectl, namespace, SUITE, "--suite").returncode == code
    assert proctor_wait(kubectl, namespace, name).returncode == code
    assert wait_with_kubectl(kubectl, namespace, name) == min(code, 1)
    ready = ("wait", f"evs/{SUITE}", f"--namespace={namespace}", "--for=condition=Ready", "--timeout=2s")
    assert kubectl.run(*ready, check=False).returncode == min(code, 1)
    assert _fetch(kubectl, f"/v1/{namespace}/evalsuites/{SUITE}")["verdict"] == verdict
    assert _fetch(kubectl, f"/v1/{namespace}/evalruns/{name}")["passes"] == (verdict is Verdict.PASS)
    columns = kubectl.run("get", "evs", SUITE, f"--namespace={namespace}", "--no-headers").stdout.split()
    assert columns[:5] == [SUITE, verdict, verdict, name, "True" if verdict is Verdict.PASS else "False"]


def test_a_new_generation_closes_the_gate_until_it_is_judged(kubectl: Kubectl, namespace: str) -> None:
    """What was judged was another spec: neither the status nor the page shows its Pass for the new one."""
    put_suite(kubectl, namespace)
    make_passes(kubectl, namespace)
    (run,) = kubectl.get("evr", f"--namespace={namespace}")["items"]
    end_run(kubectl, namespace, run["metadata"]["name"], Verdict.PASS)
    make_passes(kubectl, namespace)
    put_suite(kubectl, namespace, replicates=4)
    page = f"/v1/{namespace}/evalsuites/{SUITE}"
    assert _fetch(kubectl, page)["verdict"] == "Pending"  # before the operator has seen it
    make_passes(kubectl, namespace)
    status = suite_status(kubectl, namespace)
    assert (status["observedGeneration"], status["gate"]["verdict"], status["gate"]["forGeneration"]) == (
        1,
        "Pending",
        2,
    )
    assert _fetch(kubectl, page)["verdict"] == "Pending"
    assert len(kubectl.get("evr", f"--namespace={namespace}")["items"]) == 2


def _fetch(kubectl: Kubectl, path: str) -> Any:
    class Page:
        async def get(self, kind: Any, namespace: str, name: str) -> Any:
            async with open_kube(str(kubectl.kubeconfig)) as kube:
                return await kube.get(kind, namespace, name)

    reply = TestClient(build_app(Page(), TOKEN)).get(path, headers={"Authorization": f"Bearer {TOKEN}"})
    assert reply.status_code == 200, reply.text
    return reply.json()
