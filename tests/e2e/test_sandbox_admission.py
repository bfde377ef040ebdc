"""What the API server admits: every child as it is built, and nothing that is less than restricted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.kubectl import Kubectl
from proctor.manifests.scope import Images
from support.kube_objects import EVERYTHING, every_child
from support.live_run import Field, open_field

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
