"""What the API server admits: every child as it is built, and nothing that is less than restricted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.kubectl import Kubectl
from proctor.manifests.scope import Images
from support.chart import Helm
from support.kube_objects import EVERYTHING, every_child
from support.live_run import Field, open_field, until

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def field(kubectl: Kubectl, images: Images) -> Iterator[Field]:
    suite = {name: value for name, value in EVERYTHING.items() if name != "sandbox"}
    with open_field(kubectl, images, **suite) as found:
        found.ground()
        yield found


def _send(field: Field, *objects: dict[str, Any]) -> tuple[int, str]:
    """What the server would say; nothing is kept."""
    everything = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    words = ("create", "--dry-run=server", "--validate=strict", "--filename=-")
    done = field.kubectl.run(*words, stdin=everything, check=False)
    return done.returncode, done.stderr


def test_s1_every_child_is_admitted_without_a_warning(field: Field) -> None:
    """S1: in a namespace that admits nothing but `restricted`, each object as it is built, unknown fields refused."""
    made = [
        item for part, items in every_child(field.run).items() for item in items if part not in {"account", "documents"}
    ]
    assert _send(field, *made) == (0, "")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"hostNetwork": True}, "hostNetwork"),
        ({"hostPID": True}, "hostPID"),
        ({"volumes": [{"name": "scratch", "hostPath": {"path": "/"}}]}, "hostPath"),
        ({"securityContext": {"runAsUser": 0, "runAsNonRoot": False}}, "runAsNonRoot"),
    ],
)
def test_s1_less_is_refused(field: Field, change: dict[str, Any], word: str) -> None:
    """S1: the same pod with the host's network, processes or files, or as root; as it is, it is admitted."""
    (pod,) = every_child(field.run)["sandbox"]
    code, said = _send(field, {**pod, "spec": {**pod["spec"], **change}})
    assert code != 0
    assert "violates PodSecurity" in said
    assert word in said


def _lock(namespace: str) -> list[dict[str, Any]]:
    """The chart's own policy, for one namespace, under a name of its own: other tests share the cluster."""
    rendered = Helm().render({"admissionPolicy": {"enabled": True}})
    locks = [item for item in rendered if item["kind"].startswith("ValidatingAdmissionPolicy")]
    for item in locks:
        item["metadata"]["name"] = namespace
    (binding,) = (item for item in locks if "policyName" in item["spec"])
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    binding["spec"] |= {"policyName": namespace, "matchResources": {"namespaceSelector": here}}
    return locks


@pytest.fixture(scope="module")
def locked(field: Field) -> Iterator[Field]:
    """The namespace with the second lock, once it holds."""
    locks = _lock(field.run.namespace)
    field.kubectl.apply(*locks)
    try:
        (pod,) = every_child(field.run)["sandbox"]
        with_token = {**pod, "spec": {**pod["spec"], "automountServiceAccountToken": True}}
        until(lambda: {"status": _send(field, with_token)[1]}, lambda said: "service account token" in said["status"])
        yield field
    finally:
        for item in locks:
            field.kubectl.run("delete", item["kind"], item["metadata"]["name"], "--wait=false")


def _with_writable_start(spec: dict[str, Any]) -> dict[str, Any]:
    (first,) = spec["initContainers"]
    return {
        "initContainers": [{**first, "securityContext": first["securityContext"] | {"readOnlyRootFilesystem": False}}]
    }


def _with_secret(_: dict[str, Any]) -> dict[str, Any]:
    return {"volumes": [{"name": "scratch", "emptyDir": {}}, {"name": "x", "secret": {"secretName": "licence"}}]}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (_with_writable_start, "read-only root"),
        (_with_secret, "nothing but scratch space"),
        (lambda _: {"automountServiceAccountToken": True}, "no service account token"),
        (lambda _: {}, ""),
    ],
    ids=["an init container that writes", "a Secret", "a token", "as it is built"],
)
def test_s2_the_second_lock(locked: Field, change: Any, word: str) -> None:
    """S2: what Pod Security lets pass and a sandbox may not have, init containers too; as built, it passes."""
    (pod,) = every_child(locked.run)["sandbox"]
    code, said = _send(locked, {**pod, "spec": {**pod["spec"], **change(pod["spec"])}})
    assert word in said
    assert (code == 0) is (word == "")


def test_s2_nobody_debugs_into_a_sandbox(locked: Field, images: Images) -> None:
    """S2: an ephemeral container, restricted as it may be, is refused; in a pod that is no sandbox it isn't."""
    cell = locked.attacker(1, {}, gateway="127.0.0.1:1")
    locked.create(cell, locked.plain("neighbour", ("python3", "--version")))
    said = {
        name: locked.kubectl.run(
            *("debug", name, f"--namespace={locked.run.namespace}", f"--image={images.sandbox}"),
            *("--profile=restricted", "--attach=false", "--", "true"),
            check=False,
        )
        for name in (cell["metadata"]["name"], "neighbour")
    }
    sandbox, neighbour = said.values()
    assert neighbour.returncode == 0, neighbour.stderr
    assert sandbox.returncode != 0
    assert "can't be debugged into" in sandbox.stderr
