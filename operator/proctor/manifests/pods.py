"""What every pod of a run has in common: nothing that it doesn't need (S3, S4, S5, S7, S8, S11).

Restricted in the sense of Pod Security, a read-only root, no account's token, no Service's variables, no DNS unless it
is asked for. One place states it, so that no pod can forget a part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proctor.manifests.scope import Amounts, KubeObject, Placement

USER = 10001
"""Who everything is inside: owner of nothing on a node."""

SCRATCH = "/scratch"
"""Where files are for; /tmp is its folder `tmp`."""

_GRACE_SECONDS = 5

_SCRATCH_VOLUME = "scratch"


def _container_security() -> KubeObject:
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "privileged": False,
        "readOnlyRootFilesystem": True,
    }


def _pod_security() -> KubeObject:
    return {
        "fsGroup": USER,
        "runAsGroup": USER,
        "runAsNonRoot": True,
        "runAsUser": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _names(*, looked_up: bool) -> KubeObject:
    if looked_up:
        return {"dnsPolicy": "ClusterFirst"}
    # The API wants one name server; at this one nobody listens.
    return {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["127.0.0.1"]}}


def literal(text: str) -> str:
    """Return a text that Kubernetes hands on as it is: `$(NAME)` would be expanded in commands and variables (S29)."""
    return text.replace("$", "$$")


def variable(name: str, value: str) -> KubeObject:
    """Return a plain environment variable."""
    return {"name": name, "value": literal(value)}


def secret_variable(name: str, secret: str, key: str) -> KubeObject:
    """Return an environment variable that holds a key of a Secret."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def variables(values: Mapping[str, str]) -> tuple[KubeObject, ...]:
    """Return plain environment variables."""
    return tuple(variable(name, value) for name, value in values.items())


def mount(volume: str, path: str, *, writable: bool = False, folder: str | None = None) -> KubeObject:
    """Return where a container sees a volume, or a folder of it."""
    below = {"subPath": folder} if folder is not None else {}
    return {"name": volume, "mountPath": path, "readOnly": not writable, **below}


def scratch_mounts() -> tuple[KubeObject, ...]:
    """Return the two places where files may be written; many programs know only /tmp."""
    temporary = mount(_SCRATCH_VOLUME, "/tmp", writable=True, folder="tmp")  # noqa: S108 - a path inside
    return (mount(_SCRATCH_VOLUME, SCRATCH, writable=True), temporary)


def scratch_volume(size: str) -> KubeObject:
    """Return the volume for files: in memory, where its limit holds at once; on disk it is looked at now and then."""
    return {"name": _SCRATCH_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": size}}


SCRATCH_ENVIRONMENT = {"HOME": SCRATCH, "TMPDIR": f"{SCRATCH}/tmp", "LANG": "C.UTF-8"}  # noqa: S108 - a path inside


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One container.

    Attributes:
        name: in its pod.
        image: what it runs.
        amounts: what it may use.
        command: instead of the image's own; nothing in it is expanded.
        env: as in a pod.
        mounts: as in a pod.
        folder: where it starts; None for the image's own.
        port: that it listens on.
        startup: when it has started, as in a pod.
        readiness: when it may be called, as in a pod; None if that is when it has started.
    """

    name: str
    image: str
    amounts: Amounts
    command: tuple[str, ...] = ()
    env: tuple[KubeObject, ...] = ()
    mounts: tuple[KubeObject, ...] = ()
    folder: str | None = None
    port: int | None = None
    startup: KubeObject | None = None
    readiness: KubeObject | None = None

    def to_object(self) -> KubeObject:
        """Return it as a pod has it."""
        optional = {
            "command": [literal(word) for word in self.command],
            "env": list(self.env),
            "volumeMounts": list(self.mounts),
            "workingDir": self.folder,
            "ports": [{"containerPort": self.port, "protocol": "TCP"}] if self.port is not None else None,
            "startupProbe": self.startup,
            "readinessProbe": self.readiness,
        }
        return {
            "name": self.name,
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "resources": self.amounts.to_object(),
            "securityContext": _container_security(),
            "terminationMessagePolicy": "FallbackToLogsOnError",
            **{name: value for name, value in optional.items() if value},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod.

    Attributes:
        containers: what it runs.
        before: what runs, one after another, before those.
        volumes: as in a pod.
        account: its ServiceAccount; no token of it is mounted.
        placement: which nodes run it.
        deadline_seconds: after which it is killed; None for what runs until it is deleted, and is restarted.
        dns: whether names can be looked up.
        grace_seconds: between TERM and KILL.
    """

    containers: tuple[Container, ...]
    before: tuple[Container, ...] = ()
    volumes: tuple[KubeObject, ...] = ()
    account: str
    placement: Placement
    deadline_seconds: int | None
    dns: bool = False
    grace_seconds: int = _GRACE_SECONDS

    def to_spec(self) -> KubeObject:
        """Return its specification."""
        ends = self.deadline_seconds is not None
        return {
            "automountServiceAccountToken": False,
            "serviceAccountName": self.account,
            "enableServiceLinks": False,
            "restartPolicy": "Never" if ends else "Always",
            **({"activeDeadlineSeconds": self.deadline_seconds} if ends else {}),
            "terminationGracePeriodSeconds": self.grace_seconds,
            "securityContext": _pod_security(),
            **_names(looked_up=self.dns),
            **self.placement.to_spec(),
            **({"initContainers": [container.to_object() for container in self.before]} if self.before else {}),
            "containers": [container.to_object() for container in self.containers],
            "volumes": list(self.volumes),
        }
