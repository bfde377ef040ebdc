"""What all children of one run share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proctor.api.suite import EvalSuiteSpec, Resources, Sandbox
from proctor.errors import InvalidInput
from proctor.manifests.names import RunNames

KubeObject = dict[str, Any]

_DIGEST = re.compile(r"[^@\s]+@sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """Images that whoever runs the operator has chosen, and answers for.

    Attributes:
        operator: gateway, seeding, grading.
        sandbox: the builtin agent, the canary, and a static busybox.
        claude_code: the sandbox's with Claude Code; empty where no suite may use it.
        servers: of servers whose suite names none.
    """

    operator: str
    sandbox: str
    claude_code: str = ""
    servers: frozenset[str] = frozenset()

    def admit(self, image: str | None, what: str) -> str:
        """Return an image of a suite if it is named by its digest: a tag may be another image tomorrow (S27).

        Args:
            image: the reference.
            what: whose it is, for the message.

        Raises:
            InvalidInput: it is missing, or isn't.
        """
        if image is None:
            raise InvalidInput(f"{what} has no image: name one by its digest, like name@sha256:…")
        if image not in self.servers and not _DIGEST.fullmatch(image):
            raise InvalidInput(f"{what}: image {image!r} is not pinned: name it by its digest, like name@sha256:…")
        return image


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """What a container may use, in Kubernetes' quantities; set aside in full, so that no neighbour can take it (S23).

    Attributes:
        cpu: processor time.
        memory: memory, files in memory-backed volumes included.
        storage: what it may write to disk, its log included.
        cpu_set_aside: of `cpu`, where less than all of it is set aside: for Proctor's own programs and for servers
            under test, which need it in bursts. A sandbox has all of it.
    """

    cpu: str
    memory: str
    storage: str
    cpu_set_aside: str | None = None

    @classmethod
    def of(cls, resources: Resources | None, default: Amounts) -> Amounts:
        """Return what a suite asks for; requests are limits and limits are requests, and a limit wins."""
        if resources is None:
            return default
        asked = {**resources.requests, **resources.limits}
        return cls(
            cpu=asked.get("cpu", default.cpu),
            memory=asked.get("memory", default.memory),
            storage=asked.get("ephemeral-storage", default.storage),
        )

    def to_object(self) -> KubeObject:
        """Return it as a container has it."""
        limits = {"cpu": self.cpu, "memory": self.memory, "ephemeral-storage": self.storage}
        return {"requests": {**limits, "cpu": self.cpu_set_aside or self.cpu}, "limits": limits}


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Which nodes run a pod, and how.

    Attributes:
        runtime_class: empty for the cluster's own.
        node_selector: labels that the node must have.
        tolerations: taints that are tolerated, as in a pod.
        pull_secrets: names of Secrets for pulling images.
        user_namespace: whether root inside is nobody outside; needs a cluster that can.
    """

    runtime_class: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[KubeObject, ...] = ()
    pull_secrets: tuple[str, ...] = ()
    user_namespace: bool = False

    def over(self, sandbox: Sandbox) -> Placement:
        """Return where strangers' code of a suite runs: what the suite says, beside what holds for all pods."""
        asked = tuple(reference.name for reference in sandbox.image_pull_secrets)
        return Placement(
            runtime_class=sandbox.runtime_class_name or self.runtime_class,
            node_selector={**self.node_selector, **sandbox.node_selector},
            tolerations=(*self.tolerations, *(toleration.to_file() for toleration in sandbox.tolerations)),
            pull_secrets=tuple(dict.fromkeys((*self.pull_secrets, *asked))),
            user_namespace=self.user_namespace,
        )

    def to_spec(self) -> KubeObject:
        """Return the fields of a pod; one that says nothing is left out, since an empty one may be refused (S26)."""
        fields = {
            "runtimeClassName": self.runtime_class,
            "nodeSelector": dict(self.node_selector),
            "tolerations": list(self.tolerations),
            "imagePullSecrets": [{"name": name} for name in self.pull_secrets],
        }
        own_users = {"hostUsers": False} if self.user_namespace else {}
        return {name: value for name, value in fields.items() if value} | own_users


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScope:
    """What all children of one run share.

    Attributes:
        name: of the EvalRun.
        namespace: of the EvalRun, and so of all its children.
        uid: of the EvalRun.
        suite: as it was frozen.
        images: Proctor's own.
        clickhouse_secret: Secret in that namespace, with `user` and `password`, for the results store.
        placement: of all pods; the suite adds to it for what is not Proctor's own.
        sandbox_resources: of sandboxes, where the suite says nothing else.
        egress: variables that lead to providers through a proxy (HTTPS_PROXY and the like).
        ca_bundle: PEM text of certificates to trust instead of the system's; empty for those.
    """

    name: str
    namespace: str
    uid: str
    suite: EvalSuiteSpec
    images: Images
    clickhouse_secret: str
    placement: Placement = field(default_factory=Placement)
    sandbox_resources: Resources | None = None
    egress: Mapping[str, str] = field(default_factory=dict)
    ca_bundle: str = ""

    @property
    def names(self) -> RunNames:
        """Of the children."""
        return RunNames.of(self.uid)

    @property
    def untrusted_placement(self) -> Placement:
        """Where strangers' code runs."""
        return self.placement.over(self.suite.sandbox)

    def metadata(self, name: str, labels: Mapping[str, str]) -> KubeObject:
        """Return the metadata of a child: it goes when the run goes, and never holds the run back."""
        owner = {
            "apiVersion": "proctor.dev/v1alpha1",
            "kind": "EvalRun",
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": False,
        }
        return {"name": name, "namespace": self.namespace, "labels": dict(labels), "ownerReferences": [owner]}
