"""What a pod's status says, read once: how far it is, and how and why it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from proctor.clock import parse_instant
from proctor.core.trajectory.outcome import ExitCause, ProcessExit
from proctor.manifests.names import ATTEMPT_LABEL, PART_LABEL, ROLE_LABEL, STOP_ANNOTATION

STOP_TIME = "proctor.dev/stop-time"
MAX_MESSAGE = 400
_MAX_WORDS = 4096
"""As many last words Kubernetes keeps of a container."""

_GONE_AFTER = timedelta(seconds=90)
"""A pod that was told to end so long ago and is still there is on a node that doesn't answer."""

_OWN_LIMITS = ("exceeds the total limit of containers", "exceeded its local ephemeral storage limit", "emptydir volume")
"""What the kubelet says when it evicts a pod for its own limits, and not for the node's sake."""

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSeen:
    """One pod.

    Attributes:
        uid: of this pod, and of none after it.
        role: label.
        attempt: label of a sandbox; empty for others.
        part: label of those that serve one server for one dataset; empty for others.
        created: when it was asked for.
        running: when its first container began; None before that.
        ready: it may be called.
        ended: its phase is final.
        succeeded: it ended well.
        deleting: somebody asked to delete it, and when.
        stop_cause: why we asked to stop it; None if we didn't.
        stop_time: when we did.
        on_node: a node was chosen for it.
        restarts: of its first container.
        life: names this run of its first container; another after each restart.
        message: last words of its first container; else why it does not start.
        exit_code: of its first container's last end.
        reason: the pod's own.
        disrupted: it was ended for the cluster's sake.
        waiting: why its first container does not run.
        killed_for_memory: its first container went over its memory.
    """

    name: str
    uid: str
    role: str
    attempt: str
    part: str
    created: datetime
    running: datetime | None
    ready: bool
    ended: bool
    succeeded: bool
    deleting: datetime | None
    stop_cause: ExitCause | None
    stop_time: datetime | None
    on_node: bool
    restarts: int
    life: str
    message: str
    exit_code: int | None
    reason: str
    disrupted: bool
    waiting: str
    killed_for_memory: bool


def read_pod(pod: Object) -> PodSeen:
    """Read a pod."""
    metadata, status, spec = pod["metadata"], pod.get("status") or {}, pod.get("spec") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    main: Object = next(iter(status.get("containerStatuses") or ()), {})
    ended = _last_end(main)
    conditions = {item["type"]: item for item in status.get("conditions") or ()}
    waiting = _find_waiting(status)
    return PodSeen(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        role=labels.get(ROLE_LABEL, ""),
        attempt=labels.get(ATTEMPT_LABEL, ""),
        part=labels.get(PART_LABEL, ""),
        created=parse_instant(metadata["creationTimestamp"]),
        running=_began(main),
        ready=_holds(conditions.get("Ready")),
        ended=status.get("phase") in {"Succeeded", "Failed"},
        succeeded=status.get("phase") == "Succeeded",
        deleting=_instant(metadata.get("deletionTimestamp")),
        stop_cause=_parse_cause(annotations.get(STOP_ANNOTATION)),
        stop_time=_instant(annotations.get(STOP_TIME)),
        on_node=bool(spec.get("nodeName")),
        restarts=int(main.get("restartCount", 0)),
        life=f"{metadata.get('uid', '')}/{main.get('restartCount', 0)}",
        message=_find_message(status, ended, waiting, conditions)[-_MAX_WORDS:],
        exit_code=ended.get("exitCode"),
        reason=status.get("reason", ""),
        disrupted=_holds(conditions.get("DisruptionTarget")),
        waiting=waiting.get("reason", ""),
        killed_for_memory=ended.get("reason") == "OOMKilled",
    )


def read_exit(pod: PodSeen, now: datetime, *, pending_deadline: timedelta) -> ProcessExit | None:
    """Say how the agent in a sandbox ended; None while it may be at work.

    Args:
        pod: its pod.
        now: the instant of the look.
        pending_deadline: time that a sandbox has to start.
    """
    if pod.ended:
        return _judge_end(pod)
    if pod.running is None and now - pod.created > pending_deadline:
        why = pod.message or pod.waiting or "no node has room for it"
        return _exit(ExitCause.START_FAILED, f"not started within {pending_deadline.total_seconds():.0f} s: {why}")
    if pod.stop_cause is not None and not pod.on_node:
        return _exit(pod.stop_cause, "stopped before it began")
    for asked in (pod.deleting, pod.stop_time):
        if asked is not None and now - asked > _GONE_AFTER:
            return _exit(ExitCause.LOST, "its node does not answer")
    return None


def _judge_end(pod: PodSeen) -> ProcessExit:
    over = pod.reason == "DeadlineExceeded"
    if pod.stop_cause is not None and over:
        return ProcessExit(pod.stop_cause, pod.exit_code, pod.message[-MAX_MESSAGE:])
    if pod.deleting is not None or pod.disrupted:
        return _exit(ExitCause.LOST, f"its pod was taken away: {pod.message or pod.reason}")
    if pod.running is None:
        return _exit(ExitCause.START_FAILED, pod.message or pod.reason)
    cause = ExitCause.DEADLINE if over else _find_cause(pod)
    return ProcessExit(cause, pod.exit_code, pod.message[-MAX_MESSAGE:])


def _find_cause(pod: PodSeen) -> ExitCause:
    if pod.reason == "Evicted":
        own = any(words in pod.message.lower() for words in _OWN_LIMITS)
        return ExitCause.EXCESS if own else ExitCause.LOST
    if pod.killed_for_memory:
        return ExitCause.MEMORY
    return ExitCause.LOST if pod.exit_code is None else ExitCause.EXITED


def _exit(cause: ExitCause, message: str) -> ProcessExit:
    return ProcessExit(cause, None, message[:MAX_MESSAGE])


def _last_end(container: Object) -> Mapping[str, Any]:
    now = (container.get("state") or {}).get("terminated")
    before = (container.get("lastState") or {}).get("terminated")
    return now or before or {}


def _began(container: Object) -> datetime | None:
    state = container.get("state") or {}
    for kind in ("running", "terminated"):
        began = (state.get(kind) or {}).get("startedAt")
        # A container whose fate the kubelet doesn't know has the zero time.
        if began and not began.startswith(("0001", "1970")):
            return parse_instant(began)
    return None


def _find_waiting(status: Object) -> Mapping[str, Any]:
    """Return why the first container that waits does so; of one that merely follows others, nothing."""
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    states = [(container.get("state") or {}).get("waiting") for container in containers]
    return next((state for state in states if state and state.get("reason") != "PodInitializing"), {})


def _find_message(
    status: Object, ended: Mapping[str, Any], waiting: Mapping[str, Any], conditions: Mapping[str, Any]
) -> str:
    if status.get("reason") in {"Evicted", "DeadlineExceeded"} and not ended.get("message"):
        return str(status.get("message", ""))
    if status.get("reason") == "Evicted":
        return str(status.get("message", ""))
    before = [_last_end(container) for container in status.get("initContainerStatuses") or ()]
    failed = next((end for end in before if end.get("exitCode")), {})
    said = ended.get("message") or failed.get("message")
    if said:
        return str(said).strip()
    if waiting:
        return f"{waiting.get('reason', '')}: {waiting.get('message', '')}".strip(": ")
    scheduled = conditions.get("PodScheduled") or {}
    if scheduled.get("status") == "False":
        return str(scheduled.get("message", ""))
    return str(status.get("message", ""))


def _holds(condition: Mapping[str, Any] | None) -> bool:
    return condition is not None and condition.get("status") == "True"


def _instant(text: str | None) -> datetime | None:
    return None if not text else parse_instant(text)


def _parse_cause(text: str | None) -> ExitCause | None:
    return ExitCause(text) if text in set(ExitCause) else None
