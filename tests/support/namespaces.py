"""Namespaces of a real cluster for one test, or for the tests of one file."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator

from cluster.kubectl import Kubectl

MakeNamespace = Callable[[str], str]
_RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}


@contextlib.contextmanager
def open_namespaces(kubectl: Kubectl) -> Iterator[MakeNamespace]:
    """Make namespaces under Pod Security `restricted`; they are deleted afterwards, unwaited."""
    made: list[str] = []

    def make(purpose: str) -> str:
        name = f"{purpose}-{uuid.uuid4().hex[:8]}"
        kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": _RESTRICTED}})
        made.append(name)
        return name

    try:
        yield make
    finally:
        if made:
            kubectl.run("delete", "namespace", "--wait=false", *made)
