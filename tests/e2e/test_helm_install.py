"""The chart on a real cluster: what it may do there, and what an upgrade and a removal leave as it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster.kubectl import Kubectl
from cluster.running import RunningCluster
from support.chart import CHART, Helm, values_for

pytestmark = pytest.mark.cluster

RIGHTS = Path(__file__).with_name("golden") / "operator_rights.txt"
RELEASE = "proctor-chart-test"
RUNS = "proctor-chart-test-runs"


@dataclass(frozen=True)
class Installed:
    """A release, its values, and Helm."""

    helm: Helm
    values: dict[str, object]

    def upgrade(self) -> None:
        """Upgrade to what is there anyway; the definitions may be here from elsewhere."""
        words = ("upgrade", "--install", "proctor", str(CHART), f"--namespace={RELEASE}", "--take-ownership")
        self.helm.run(*words, values=self.values)


@pytest.fixture(scope="module")
def installed(cluster: RunningCluster, kubectl: Kubectl) -> Iterator[Installed]:
    """The chart, installed for one namespace with runs."""
    for name in (RELEASE, RUNS):
        kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    release = Installed(Helm(kubectl.kubeconfig), values_for(cluster.images, RUNS))
    release.upgrade()
    yield release
    release.helm.run("uninstall", "proctor", f"--namespace={RELEASE}", "--ignore-not-found")
    kubectl.run("delete", "namespace", "--wait=false", RELEASE, RUNS)


def _rights(listed: str) -> str:
    """Return resources and verbs, without what everybody may do."""
    lines = [line.split("[") for line in listed.splitlines()[1:]]
    rights = {f"{words[0].strip()} [{words[-1]}" for words in lines if words[0].strip()}
    return "\n".join(sorted(line for line in rights if not line.startswith("self"))) + "\n"


@pytest.mark.usefixtures("installed")
def test_the_operator_may_do_what_it_does_and_no_more(kubectl: Kubectl) -> None:
    """S28: a golden `kubectl auth can-i --list`; Secrets can be created and never be read."""
    who = f"--as=system:serviceaccount:{RELEASE}:proctor-operator"
    listed = kubectl.run("auth", "can-i", "--list", who, f"--namespace={RUNS}").stdout
    assert _rights(listed) == RIGHTS.read_text("utf-8")
    for verb in ("get", "list", "watch"):
        for namespace in (RUNS, RELEASE, "default"):
            asked = kubectl.run("auth", "can-i", verb, "secrets", who, f"--namespace={namespace}", check=False)
            assert asked.stdout.strip() == "no", (verb, namespace)


@pytest.mark.usefixtures("installed")
def test_operator_page_and_store_come_up(kubectl: Kubectl) -> None:
    """Helm chart: all three are ready, under their own network policies and with read-only roots."""
    for workload in ("deployment/proctor-operator", "deployment/proctor-web", "statefulset/proctor-clickhouse"):
        kubectl.run("rollout", "status", workload, f"--namespace={RELEASE}", "--timeout=180s")


def test_an_upgrade_keeps_keys_and_objects(installed: Installed, kubectl: Kubectl) -> None:
    """Helm chart: the master key, the token and the passwords are made once."""

    def read() -> list[object]:
        names = ("proctor-master", "proctor-web", "proctor-clickhouse")
        return [kubectl.get("secret", name, f"--namespace={RELEASE}")["data"] for name in names]

    before = read()
    installed.upgrade()
    assert read() == before
    assert kubectl.get("secret", "proctor-clickhouse", f"--namespace={RUNS}")["data"] == before[2]
