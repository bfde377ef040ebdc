"""Suites by the chart's own operator on a real cluster: what a Deployment runs is followed, and schedules fire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.running import RunningCluster
from proctor.clock import parse_instant
from proctor.reconcile.suites_plan import CAUSE_LABEL, SCHEDULED_ANNOTATION, SUITE_LABEL
from proctor.reconcile.suites_seen import RunCause
from support.cluster_pods import SECURITY
from support.installed import Installed, await_it, install
from support.manifests import manifest
from support.suites import FOLLOWER, IMAGE_A

pytestmark = pytest.mark.cluster

CURRENT = {"name": "current", "stdio": {"command": ["mcp"], "image": IMAGE_A}, "allowedTools": ["run_query"]}


@pytest.fixture(scope="module")
def installed(cluster: RunningCluster) -> Iterator[Installed]:
    with install(cluster, "suites") as found:
        yield found


def put_suite(installed: Installed, name: str, **spec: Any) -> None:
    metadata = {"name": name, "namespace": installed.namespace}
    installed.kubectl.run("apply", "--filename=-", stdin=json.dumps(manifest(**spec) | {"metadata": metadata}))


def deploy(installed: Installed, image: str) -> None:
    """Let the followed Deployment run an image; both that are used here have busybox."""
    labels = {"app": "my-mcp"}
    sleeper = {"name": "server", "image": image, "command": ["/bin/busybox", "sleep", "1000000"]}
    pod = {
        "terminationGracePeriodSeconds": 0,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [sleeper | {"securityContext": SECURITY}],
    }
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    metadata = {"name": "my-mcp", "namespace": installed.namespace}
    installed.kubectl.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})


def await_image(installed: Installed, wanted: str) -> str:
    """Return the one image that the Deployment's pods run, as the node calls it: it may know it by several digests."""
    where = ("pods", f"--namespace={installed.namespace}", "--selector=app=my-mcp")

    def look() -> str | None:
        pods = installed.kubectl.get(*where)["items"]
        asked = [pod["spec"]["containers"][0]["image"] for pod in pods]
        ready = [each for pod in pods for each in pod["status"].get("containerStatuses", ()) if each["ready"]]
        return str(ready[0]["imageID"]) if asked == [wanted] and ready else None

    return await_it(f"{wanted} runs alone", look)


def runs_of(installed: Installed, suite: str) -> dict[str, dict[str, Any]]:
    """Return a suite's runs by name, and cancel those that go on: what they would show is not asked."""
    where = (f"--namespace={installed.namespace}", f"--selector={SUITE_LABEL}={suite}")
    found = {run["metadata"]["name"]: run for run in installed.kubectl.get("evalruns", *where)["items"]}
    for name, run in found.items():
        if not run["spec"].get("cancel"):
            patch = ("--type=merge", '--patch={"spec": {"cancel": true}}')
            installed.kubectl.run("patch", "evalrun", name, where[0], *patch)
    return found


def suite_status(installed: Installed, name: str) -> dict[str, Any]:
    found: dict[str, Any] = installed.kubectl.get("evalsuite", name, f"--namespace={installed.namespace}")["status"]
    return found


def await_gate(installed: Installed, run: str) -> dict[str, Any]:
    """Wait until the suite's gate has the end of a run; return its status."""

    def look() -> dict[str, Any] | None:
        status = suite_status(installed, "following")
        gate = status.get("gate", {})
        return status if gate.get("runRef") == run and gate["verdict"] != "Pending" else None

    return await_it(f"the gate has the end of {run}", look)


def test_another_image_of_a_deployment_makes_another_run(installed: Installed, cluster: RunningCluster) -> None:
    """Suites: `imageFrom` takes the digest that the Deployment's pods run; each digest is run once."""
    put_suite(installed, "following", servers=[CURRENT, FOLLOWER], runOnChange=True)
    waiting = await_it("an image is awaited", lambda: suite_status(installed, "following").get("conditions"))
    assert {each["type"]: each["status"] for each in waiting}["Ready"] == "False"
    assert runs_of(installed, "following") == {}
    seen: set[str] = set()
    for wanted in (cluster.images["pause"], cluster.images["busybox"]):
        deploy(installed, wanted)
        image = await_image(installed, wanted)
        (name,) = await_it(f"a run of {image}", lambda: set(runs_of(installed, "following")) - seen)
        run = runs_of(installed, "following")[name]
        assert run["metadata"]["labels"][CAUSE_LABEL] == RunCause.CHANGE
        assert run["spec"]["servers"] == [{"name": "candidate", "image": image}]
        status = await_gate(installed, name)
        assert (status["gate"]["forGeneration"], status["gate"]["images"]) == (1, {"candidate": image})
        seen.add(name)
    assert set(runs_of(installed, "following")) == seen


def test_a_schedule_fires(installed: Installed) -> None:
    """Suites: a scheduled run is made at its minute, and touches no gate."""
    put_suite(installed, "nightly", schedule="* * * * *")
    first = await_it("the schedule is seen", lambda: suite_status(installed, "nightly").get("schedule"))
    (run,) = await_it("a run is made", lambda: list(runs_of(installed, "nightly").values()))
    assert run["metadata"]["labels"][CAUSE_LABEL] == RunCause.SCHEDULE
    at = parse_instant(run["metadata"]["annotations"][SCHEDULED_ANNOTATION])
    assert (at.second, at >= parse_instant(first["next"])) == (0, True)
    assert parse_instant(run["metadata"]["creationTimestamp"]) >= at
    after = await_it("that time is dealt with", lambda: _dealt_with(installed, first))
    assert parse_instant(after["schedule"]["next"]) > at
    assert "gate" not in after


def _dealt_with(installed: Installed, before: dict[str, Any]) -> dict[str, Any] | None:
    status = suite_status(installed, "nightly")
    return status if status["schedule"]["next"] != before["next"] else None
