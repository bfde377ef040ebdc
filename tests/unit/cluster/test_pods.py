"""What a sandbox's pod says of how its agent ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from proctor.cluster.pods import read_exit, read_pod
from proctor.core.trajectory.outcome import ExitCause

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
AT = "2026-11-30T11:59:00Z"
PENDING = timedelta(seconds=300)
EVICTED = {"phase": "Failed", "reason": "Evicted"}


def make_pod(status: dict[str, Any], *, metadata: dict[str, Any] | None = None, node: str = "n") -> dict[str, Any]:
    own = {"name": "pr-0-a-1", "uid": "u", "creationTimestamp": AT, "labels": {}, **(metadata or {})}
    return {"metadata": own, "spec": {"nodeName": node} if node else {}, "status": status}


def ended(code: int = 0, **more: Any) -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "startedAt": AT, **more}}
    return {"containerStatuses": [{"name": "agent", "restartCount": 0, "state": state}]}


def stopped(cause: str) -> dict[str, Any]:
    return {"annotations": {"proctor.dev/stop-cause": cause, "proctor.dev/stop-time": AT}}


@pytest.mark.parametrize(
    ("status", "metadata", "cause"),
    [
        ({"phase": "Succeeded", **ended()}, None, ExitCause.EXITED),
        ({"phase": "Failed", **ended(3)}, None, ExitCause.EXITED),
        ({"phase": "Failed", **ended(137, reason="OOMKilled")}, None, ExitCause.MEMORY),
        ({"phase": "Failed", "reason": "DeadlineExceeded", **ended(143)}, None, ExitCause.DEADLINE),
        ({"phase": "Failed", "reason": "DeadlineExceeded", **ended(143)}, stopped("cancelled"), ExitCause.CANCELLED),
        ({"phase": "Succeeded", **ended()}, stopped("deadline"), ExitCause.EXITED),
        ({**EVICTED, "message": 'Usage of EmptyDir volume "scratch" exceeds the limit', **ended(137)}, None,
         ExitCause.EXCESS),
        ({**EVICTED, "message": "The node was low on resource: memory.", **ended(137)}, None, ExitCause.LOST),
        ({"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True"}], **ended(143)}, None,
         ExitCause.LOST),
        ({"phase": "Failed", **ended(143)}, {"deletionTimestamp": AT}, ExitCause.LOST),
        ({"phase": "Failed", "reason": "DeadlineExceeded"}, None, ExitCause.START_FAILED),
        ({"phase": "Running", "conditions": []}, {"deletionTimestamp": "2026-11-30T11:58:00Z"}, ExitCause.LOST),
    ],
)  # fmt: skip
def test_the_cause_of_an_end(status: dict[str, Any], metadata: dict[str, Any] | None, cause: ExitCause) -> None:
    """P4, grading rule 9: what is the agent's own doing, and what is infrastructure's."""
    exit_ = read_exit(read_pod(make_pod(status, metadata=metadata)), NOW, pending_deadline=PENDING)
    assert exit_ is not None
    assert exit_.cause is cause


def test_a_pod_at_work_has_not_ended() -> None:
    """P4: to run, or to have been told to end a moment ago, is no end."""
    running = {"phase": "Running", "containerStatuses": [{"name": "agent", "state": {"running": {"startedAt": AT}}}]}
    soon = {"deletionTimestamp": "2026-11-30T11:59:58Z"}
    for metadata in (None, soon):
        pod = read_pod(make_pod(running, metadata=metadata))
        assert read_exit(pod, NOW, pending_deadline=PENDING) is None


def test_a_pod_that_does_not_start_says_why() -> None:
    """P4: past the pending deadline, with the kubelet's or the scheduler's own words."""
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
    image = make_pod({"phase": "Pending", "containerStatuses": [{"name": "agent", "state": waiting}]})
    room = [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}]
    for pod, words in ((image, "no such image"), (make_pod({"phase": "Pending", "conditions": room}, node=""), "0/1")):
        exit_ = read_exit(read_pod(pod), NOW + PENDING, pending_deadline=PENDING)
        assert exit_ is not None
        assert exit_.cause is ExitCause.START_FAILED
        assert words in exit_.message
