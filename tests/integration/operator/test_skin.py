"""The operator's skin: kopf's events wake it, its own look at everything finds what they miss, kopf writes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import kmock
import pytest
import yaml
from kmock import action

from proctor.adapters.kube.kinds import EVAL_RUN
from proctor.adapters.prometheus.metrics import OperatorMetrics
from proctor.api.run import Verdict
from proctor.handlers.operating import Operator
from proctor.handlers.skin import watch
from support.operated import Operated, make_installation, make_settings, operate

PACE = 0.02
RESOURCES = {
    ("proctor.dev", "v1alpha1", "evalruns"): "EvalRun",
    ("proctor.dev", "v1alpha1", "evalsuites"): "EvalSuite",
    # kopf begins once it has seen these two.
    ("", "v1", "namespaces"): "Namespace",
    ("apiextensions.k8s.io", "v1", "customresourcedefinitions"): "CustomResourceDefinition",
}


@pytest.fixture
def kubeconfig(kmock: kmock.KubernetesEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lead kopf to the API server in memory."""
    for (group, version, plural), kind in RESOURCES.items():
        verbs = {"list", "watch", "get", "patch"}
        kmock.resources[group, version, plural] = {"kind": kind, "namespaced": "Eval" in kind, "verbs": verbs}
    content = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "clusters": [{"name": "here", "cluster": {"server": str(kmock.url)}}],
        "users": [{"name": "me", "user": {}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    monkeypatch.setenv("KUBECONFIG", str(path))


@asynccontextmanager
async def operating(operated: Operated, *, relist_seconds: float) -> AsyncIterator[OperatorMetrics]:
    """An operator with its skin on, and pods that are played beside it."""
    metrics = OperatorMetrics("test")
    installation = make_installation(operated.api, lambda: operated.gateway)
    operator = Operator(installation, metrics, pass_seconds=PACE, relist_seconds=relist_seconds)
    stop = asyncio.Event()
    settings = make_settings(healthPort=18437)
    tasks = [asyncio.create_task(watch(operator, settings, stop=stop)), asyncio.create_task(play(operated))]
    try:
        yield metrics
    finally:
        stop.set()
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def play(operated: Operated) -> None:
    while True:
        operated.pods.turn()
        operated.api.pass_time(1)
        await asyncio.sleep(PACE)


async def wait_until_watched(kmock: kmock.KubernetesEmulator) -> None:
    async with asyncio.timeout(60):
        while len(kmock[action.WATCH]) == 0:  # noqa: ASYNC110 - as below
            await asyncio.sleep(PACE)


async def wait_for_verdict(operated: Operated) -> Verdict:
    async with asyncio.timeout(60):
        while not operated.status.terminal:  # noqa: ASYNC110 - what is awaited is in the API server
            await asyncio.sleep(PACE)
    return operated.status.verdict


@pytest.mark.usefixtures("kubeconfig")
async def test_an_event_starts_a_run_and_kopf_writes_nothing(kmock: kmock.KubernetesEmulator) -> None:
    """P2: no finalizer, no annotation: all that kopf asks of the API server is to be told."""
    operated = operate()
    run = operated.api.objects.pop((EVAL_RUN.plural, "team", "quick-1"))
    async with operating(operated, relist_seconds=3600) as metrics:
        await wait_until_watched(kmock)
        operated.api.objects[EVAL_RUN.plural, "team", "quick-1"] = run
        await kmock.clients[0].post("/apis/proctor.dev/v1alpha1/namespaces/team/evalruns", json=run)
        assert await wait_for_verdict(operated) is Verdict.PASS
        assert b"proctor_reconcile" in metrics.render()
    assert len(kmock[action.CREATE]) == 1  # the test's own
    assert len(kmock[action.UPDATE]) == len(kmock[action.DELETE]) == 0
    assert "finalizers" not in operated.run["metadata"]
    assert "annotations" not in operated.run["metadata"]


@pytest.mark.usefixtures("kubeconfig")
async def test_a_run_that_no_event_told_of_is_found(kmock: kmock.KubernetesEmulator) -> None:  # noqa: ARG001 - it is silent
    """P13, P3: a silent watch and a lost event cost seconds, not the run."""
    operated = operate()
    async with operating(operated, relist_seconds=0.2):
        assert await wait_for_verdict(operated) is Verdict.PASS
    assert len(operated.api.every(EVAL_RUN)) == 1
