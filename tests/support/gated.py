"""A suite and its runs on a real API server, whose verdicts a test writes as the operator does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from cluster.kubectl import Kubectl
from proctor.adapters.kube.client import KubeClient
from proctor.adapters.kube.connecting import open_kube
from proctor.adapters.kube.kinds import EVAL_RUN
from proctor.api.run import EvalRunStatus, Verdict
from proctor.cluster.installation import Installation
from proctor.cluster.suite_driver import SuiteDriver
from support.manifests import manifest, server
from support.operated import make_settings
from support.statuses import conditions
from support.suites import IMAGE_A, ended

SUITE = "gated"
_Found = TypeVar("_Found")


def build_gated(namespace: str, **spec: Any) -> dict[str, Any]:
    """Return a suite that makes a run of each change."""
    # An operator that is there too would end a run without images at once; these are never found.
    servers = [server(name, stdio={"command": ["mcp"], "image": IMAGE_A}) for name in ("current", "candidate")]
    metadata = {"name": SUITE, "namespace": namespace}
    return manifest(**{"runOnChange": True, "servers": servers} | spec) | {"metadata": metadata}


def put_suite(kubectl: Kubectl, namespace: str, **spec: Any) -> None:
    kubectl.run("apply", "--filename=-", stdin=json.dumps(build_gated(namespace, **spec)))


def make_passes(kubectl: Kubectl, namespace: str) -> None:
    """Pass over the suite until nothing changes, as the operator does."""

    async def settle(kube: KubeClient) -> None:
        installation = Installation(kube=kube, settings=make_settings(), master_key=b"m" * 32, namespace="nowhere")
        driver = SuiteDriver(installation, namespace, SUITE)
        before = None
        for _ in range(5):
            after = await driver.make_pass()
            if after == before:
                return
            before = after
        raise AssertionError(f"no rest: {after}")

    _ask(kubectl, settle)


def begin_run(kubectl: Kubectl, namespace: str, name: str) -> None:
    """Write the status of a run that goes on."""
    status = {"observedGeneration": 1, "verdict": "Pending", "conditions": conditions("Reconciling")}
    _write(kubectl, namespace, name, status)


def end_run(kubectl: Kubectl, namespace: str, name: str, verdict: Verdict) -> None:
    """Write the verdict as the operator does: with its conditions and its generation, in one patch."""
    status = ended(verdict).to_file() | {"observedGeneration": 1, "enforcement": "Enforce"}
    holds = "Ready" if verdict is Verdict.PASS else "Stalled"
    extra = [c | {"type": "Complete", "status": "True"} for c in conditions(holds)[:1]]
    _write(kubectl, namespace, name, status | {"conditions": [*conditions(holds), *extra]})


def find_runs(kubectl: Kubectl, namespace: str) -> list[str]:
    """Return the names of the runs that there are, the newest last."""
    runs = kubectl.get("evr", f"--namespace={namespace}", "--sort-by=.metadata.creationTimestamp")["items"]
    return [run["metadata"]["name"] for run in runs]


def _write(kubectl: Kubectl, namespace: str, name: str, status: dict[str, Any]) -> None:
    EvalRunStatus.model_validate(status)
    _ask(kubectl, lambda kube: kube.merge_status(EVAL_RUN, namespace, name, status))


def _ask(kubectl: Kubectl, look: Callable[[KubeClient], Awaitable[_Found]]) -> _Found:
    async def run() -> _Found:
        async with open_kube(str(kubectl.kubeconfig)) as kube:
            return await look(kube)

    return asyncio.run(run())
