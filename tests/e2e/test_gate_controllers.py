"""Flux and Argo Rollouts themselves, on a real API server, by the recipes of docs/gates.md; Tekton's kinds too."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cluster.kubectl import Kubectl
from cluster.running import RunningCluster
from proctor.api.run import Verdict
from support.gated import SUITE, begin_run, build_gated, end_run, find_runs, make_passes, put_suite
from support.installed import await_it
from support.namespaces import open_namespaces
from support.page_process import serve_page
from support.pipelines import Fleet, define_flux, define_rollouts, define_tekton, run_flux, run_rollouts, serve_fleet
from support.readers import TOKEN
from support.recipes_of_gates import load_gate

pytestmark = pytest.mark.controllers

CRDS = Path(__file__).parents[2] / "crds"
RUN = {
    "apiVersion": "proctor.dev/v1alpha1",
    "kind": "EvalRun",
    "metadata": {"name": "nightly"},
    "spec": {"suiteRef": {"name": SUITE}},
}
POLLS_SECONDS = 12
"""Flux looks at what it waits for every five."""


@pytest.fixture(scope="module", autouse=True)
def definitions(kubectl: Kubectl) -> None:
    kubectl.run("apply", "--server-side", "--force-conflicts", f"--filename={CRDS}")
    define_flux(kubectl)
    define_rollouts(kubectl)


@dataclass(frozen=True)
class Flux:
    """The recipe's two Kustomizations in a namespace, and the repository that they apply."""

    kubectl: Kubectl
    namespace: str
    fleet: Fleet

    def push(self, version: str, evals: Mapping[str, Any]) -> str:
        """Commit the evaluations, and a version of the app that depends on them."""
        metadata = {"name": "app", "namespace": self.namespace}
        app = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"version": version}}
        return self.fleet.push({"evals/evals.yaml": evals, "app/app.yaml": app})

    def condition(self, name: str, kind: str) -> dict[str, Any]:
        """Return a condition of a Kustomization; empty before it has one."""
        status = self.kubectl.get("kustomization", name, f"--namespace={self.namespace}").get("status") or {}
        return next((each for each in status.get("conditions", ()) if each["type"] == kind), {})

    def app(self) -> str:
        """Return which version of the app is applied."""
        where = ("configmap", "app", f"--namespace={self.namespace}", "--ignore-not-found")
        return self.kubectl.run("get", *where, "--output=jsonpath={.data.version}").stdout

    def await_checking(self, revision: str) -> None:
        """Wait until a revision is applied, and its health is looked at."""
        await_it(f"{revision} is checked", lambda: self._says("Healthy", "Unknown", f"for revision {revision}"))

    def await_failed(self) -> str:
        """Wait until the health check has failed; return the words."""
        await_it("the evaluations have failed", lambda: self._says("Ready", "False", "health check failed"))
        assert self.condition("evals", "Ready")["reason"] == "HealthCheckFailed"
        return str(self.condition("evals", "Ready")["message"])

    def await_applied(self, version: str) -> None:
        """Wait until the evaluations are Ready, and the app follows."""
        await_it("the evaluations are Ready", lambda: self._says("Ready", "True"))
        await_it(f"the app is at {version}", lambda: self.app() == version)

    def check_held(self, version: str) -> None:
        """See that, for some polls, Flux neither goes on nor gives up."""
        until = time.monotonic() + POLLS_SECONDS
        while time.monotonic() < until:
            assert self.app() == version
            assert self.condition("evals", "Healthy")["status"] == "Unknown"
            assert self.condition("evals", "Ready")["status"] != "True"
            time.sleep(1)

    def _says(self, kind: str, status: str, words: str = "") -> bool:
        found = self.condition("evals", kind)
        return found.get("status") == status and words in found.get("message", "")


@pytest.fixture
def flux(kubectl: Kubectl, make_namespace: Callable[[str], str], tmp_path: Path) -> Iterator[Flux]:
    namespace = make_namespace("flux")
    folder = tmp_path / "artifacts"
    folder.mkdir()
    with serve_fleet(kubectl, namespace, folder) as fleet, run_flux(kubectl, namespace, tmp_path / "flux.log"):
        kubectl.apply(*load_gate("flux.yaml", {"flux-system": namespace}))
        yield Flux(kubectl, namespace, fleet)


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE])
def test_flux_applies_the_app_once_a_run_has_passed(verdict: Verdict, flux: Flux) -> None:
    """Flux: progressing while a run goes on; Ready at Pass; failed at once, not at its timeout, at anything else."""
    run = RUN | {"metadata": {"name": "nightly", "namespace": flux.namespace}}
    flux.await_checking(flux.push("1", run))
    flux.check_held("")  # nobody has looked at the run yet: it has the status that it is born with
    begin_run(flux.kubectl, flux.namespace, "nightly")
    flux.check_held("")
    end_run(flux.kubectl, flux.namespace, "nightly", verdict)
    if verdict is Verdict.PASS:
        flux.await_applied("1")
    else:
        assert "EvalRun" in flux.await_failed()
        assert flux.app() == ""


def test_flux_takes_no_old_verdict_for_a_new_suite(flux: Flux) -> None:
    """Flux: what passed was another generation; the app of a commit that changes a suite waits for its own verdict."""
    flux.await_checking(flux.push("1", build_gated(flux.namespace)))
    make_passes(flux.kubectl, flux.namespace)
    (first,) = find_runs(flux.kubectl, flux.namespace)
    end_run(flux.kubectl, flux.namespace, first, Verdict.PASS)
    make_passes(flux.kubectl, flux.namespace)
    flux.await_applied("1")
    flux.await_checking(flux.push("2", build_gated(flux.namespace, replicates=4)))
    flux.check_held("1")  # before the operator has seen it
    make_passes(flux.kubectl, flux.namespace)
    flux.check_held("1")  # its run goes on
    (second,) = set(find_runs(flux.kubectl, flux.namespace)) - {first}
    end_run(flux.kubectl, flux.namespace, second, Verdict.FAIL)
    make_passes(flux.kubectl, flux.namespace)
    assert "EvalSuite" in flux.await_failed()
    assert flux.app() == "1"


@dataclass(frozen=True)
class Canary:
    """The recipe's Rollout under a name of its own, with a new template on its way."""

    kubectl: Kubectl
    namespace: str
    evals: str
    name: str

    @classmethod
    def deploy(cls, kubectl: Kubectl, namespace: str, evals: str, rollout: Mapping[str, Any]) -> Canary:
        """Apply the first version, and wait until it runs."""
        canary = cls(kubectl, namespace, evals, rollout["metadata"]["name"])
        kubectl.apply(dict(rollout))
        await_it(f"{canary.name} runs", lambda: canary.status().get("phase") == "Healthy")
        return canary

    def change(self) -> None:
        """Change the pods' template."""
        patch = {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}}
        self._do("patch", "rollout", self.name, "--type=merge", f"--patch={json.dumps(patch)}")

    def status(self) -> dict[str, Any]:
        """Return the Rollout's status."""
        found: dict[str, Any] = self.kubectl.get("rollout", self.name, f"--namespace={self.namespace}")
        return found.get("status") or {}

    def await_run(self) -> str:
        """Return the name of the run that the analysis has made."""
        return await_it(f"{self.name} has a run", self._find_run)

    def await_pending(self) -> None:
        """Wait until the analysis has asked the page, and heard that the run goes on."""
        await_it(f"{self.name} asks", lambda: self._measured("verdict") and self._measured("decided"))
        assert self._measured("start") == {"Successful"}
        assert self._measured("verdict") == {"Inconclusive"}
        assert self._measured("decided") == {"Failed"}

    def await_phase(self, *phases: str) -> dict[str, Any]:
        """Wait until the Rollout is in one of these phases; return its status."""
        await_it(f"{self.name} is {phases}", lambda: self.status().get("phase") in phases)
        return self.status()

    def _find_run(self) -> str | None:
        status = self.status()
        new = status.get("currentPodHash", "")
        if new == status.get("stableRS") or new not in find_runs(self.kubectl, self.evals):
            return None
        return str(new)

    def _measured(self, metric: str) -> set[str]:
        name = self.status().get("canary", {}).get("currentStepAnalysisRunStatus", {}).get("name")
        if name is None:
            return set()
        status = self.kubectl.get("analysisrun", name, f"--namespace={self.namespace}").get("status") or {}
        found = [each for each in status.get("metricResults", ()) if each["name"] == metric]
        return {measurement["phase"] for each in found for measurement in each.get("measurements", ())}

    def _do(self, *words: str) -> None:
        self.kubectl.run(*words, f"--namespace={self.namespace}")


@pytest.fixture(scope="module")
def canaries(
    cluster: RunningCluster, kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[Verdict, Canary]]:
    """One Rollout for each verdict that it may get, all with a change on its way and a run that goes on."""
    folder = tmp_path_factory.mktemp("rollouts")
    (folder / "mounted").mkdir()
    with (
        open_namespaces(kubectl) as make_namespace,
        serve_page(kubectl, folder / "mounted") as page,
    ):
        namespace, evals = make_namespace("mcp"), make_namespace("evals")
        template, rollout, *rights = load_gate(
            "rollouts.yaml",
            {
                "namespace: mcp": f"namespace: {namespace}",
                "namespace: evals": f"namespace: {evals}",
                "value: evals": f"value: {evals}",
                "value: sql-servers": f"value: {SUITE}",
                "proctor-web.proctor-system": page,  # the controller is no pod: it finds no Service by its name
                f"registry.example.com/kubectl@sha256:{64 * '1'}": cluster.images["kubectl"],
                f"registry.example.com/mcp@sha256:{64 * '2'}": cluster.images["pause"],
            },
        )
        put_suite(kubectl, evals, runOnChange=False)
        secret = {"name": "proctor-gate", "namespace": namespace}
        kubectl.apply({"apiVersion": "v1", "kind": "Secret", "metadata": secret, "stringData": {"token": TOKEN}})
        kubectl.apply(template, *rights)
        with run_rollouts(kubectl, namespace, folder / "rollouts.log"):
            found = {
                verdict: Canary.deploy(kubectl, namespace, evals, _rename(rollout, verdict.lower()))
                for verdict in (Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE)
            }
            for canary in found.values():
                canary.change()
            for canary in found.values():
                begin_run(kubectl, evals, canary.await_run())
            yield found


def _rename(rollout: Mapping[str, Any], name: str) -> dict[str, Any]:
    text = json.dumps(rollout)
    return dict(
        json.loads(text.replace('"name": "mcp"', f'"name": "{name}"').replace('"app": "mcp"', f'"app": "{name}"'))
    )


def test_rollouts_makes_a_run_of_the_pods_own_image(canaries: dict[Verdict, Canary], cluster: RunningCluster) -> None:
    """Argo Rollouts: each run is named after its pods' template, and judges the image that is on its way."""
    for canary in canaries.values():
        run = canary.kubectl.get("evalrun", canary.await_run(), f"--namespace={canary.evals}")
        assert run["spec"]["suiteRef"] == {"name": SUITE}
        assert run["spec"]["servers"] == [{"name": "candidate", "image": cluster.images["pause"]}]


@pytest.mark.parametrize(
    ("verdict", "phase"),
    [(Verdict.PASS, "Healthy"), (Verdict.FAIL, "Degraded"), (Verdict.INCONCLUSIVE, "Paused")],
)
def test_rollouts_does_as_the_verdict_says(verdict: Verdict, phase: str, canaries: dict[Verdict, Canary]) -> None:
    """Argo Rollouts: waits while the run goes on; promotes on Pass, aborts on Fail, pauses on Inconclusive."""
    canary = canaries[verdict]
    run = canary.await_run()
    canary.await_pending()
    before = canary.status()
    assert (before["phase"], before["currentStepIndex"]) == ("Progressing", 1)
    end_run(canary.kubectl, canary.evals, run, verdict)
    after = canary.await_phase(phase)
    assert after.get("abort", False) == (verdict is Verdict.FAIL)
    assert after["stableRS"] == (run if verdict is Verdict.PASS else before["stableRS"])
    paused = [each["reason"] for each in after.get("pauseConditions", ())]
    assert paused == (["InconclusiveAnalysisRun"] if verdict is Verdict.INCONCLUSIVE else [])


@pytest.fixture
def tekton(kubectl: Kubectl) -> Iterator[None]:
    """Tekton's own definition of a Task; it goes again if it was not there before."""
    name = "tasks.tekton.dev"
    known = kubectl.run("get", "crd", name, check=False).returncode == 0
    define_tekton(kubectl)
    yield
    if not known:
        kubectl.run("delete", "crd", name)


@pytest.mark.usefixtures("tekton")
def test_tekton_takes_the_task(kubectl: Kubectl, make_namespace: Callable[[str], str]) -> None:
    """Tekton: the snippet has the fields of a Task, and no others."""
    (task,) = load_gate("tekton.yaml")
    task["metadata"]["namespace"] = make_namespace("tekton")
    create = ("create", "--dry-run=server", "--validate=strict", "--filename=-")
    kubectl.run(*create, stdin=json.dumps(task))
    task["spec"]["steps"][0]["timeouts"] = "3h"
    refused = kubectl.run(*create, stdin=json.dumps(task), check=False)
    assert 'unknown field "spec.steps[0].timeouts"' in refused.stderr
