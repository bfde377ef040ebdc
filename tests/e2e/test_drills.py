"""Drills on a real cluster: something breaks in the middle of a run, and the run ends as it has to all the same.

A run takes most of its time to get to where it can be broken, so the runs of the next two drills are on their way while
one is broken. What is seen in each is in docs/drills.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from support.cluster_pods import build_policy
from support.courses import check_measured, check_no_score
from support.drills import BOMB, CALLING, GREEDY, LINGERING, SCORE, SMALL, Drill, build_spec, without_store
from support.installed import await_it

pytestmark = pytest.mark.cluster

ALONE = frozenset({"test_clickhouse_down_while_recording"})

MISSING = "localhost/proctor/missing@sha256:" + "0" * 64


def build_specs(images: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the suites of drills that have a special one, by test."""
    patient = build_spec(images)
    soon = {"pendingDeadlineSeconds": 120, "infraRetries": 0}
    without_image = patient["agent"] | {"command": patient["agent"]["command"] | {"image": MISSING}}
    bomb = build_spec(images, BOMB)
    loudest = {"name": "loudest", "scripted": {"policy": "loudest"}}
    return {
        "test_unschedulable": patient | {"sandbox": {"resources": {"limits": SMALL | {"cpu": "512"}}}, "limits": soon},
        "test_image_missing": patient | {"agent": without_image, "limits": soon},
        "test_out_of_memory": build_spec(images, GREEDY),
        "test_gateway_killed_mid_call": build_spec(images, CALLING),
        "test_clickhouse_down_while_recording": build_spec(images, LINGERING),
        "test_fork_bomb_with_full_scratch": bomb
        | {
            "models": [*bomb["models"], loudest],
            "agent": bomb["agent"] | {"deadlineSeconds": 120},
            "sandbox": {"resources": {"limits": SMALL | {"memory": "1Gi"}}},
        },
    } | {"": patient}


def test_unschedulable(drill: Drill) -> None:
    """P3, P4: a sandbox that no node has room for ends the run after its pending deadline, in the scheduler's words."""
    status = check_no_score(drill, "Error", "ControlsNotMeasured")
    assert "Insufficient cpu" in status["summary"]


def test_image_missing(drill: Drill) -> None:
    """P5: an image that can't be pulled is lost to infrastructure: Error, and the image is named."""
    status = check_no_score(drill, "Error", "TooManyInfraErrors")
    assert status["cells"]["infraErrored"] == 1
    assert MISSING in status["summary"]


def test_pod_deleted(drill: Drill) -> None:
    """P2, P29: a sandbox that somebody deletes is lost to infrastructure; its cell is tried again, and counts once."""
    lost = drill.await_agent()
    drill.kubectl("delete", "pod", lost, "--wait=false")
    drill.let_go(drill.await_agent(after=lost))
    check_measured(drill, (1, "infra_error"), (2, "completed"))


def test_pod_evicted(drill: Drill) -> None:
    """P1: a sandbox that is evicted for its node's sake is lost to infrastructure, as one that is deleted."""
    lost = drill.await_agent()
    metadata = {"name": lost, "namespace": drill.installed.namespace}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{lost}/eviction"
    drill.kubectl("create", f"--raw={path}", "--filename=-", stdin=json.dumps(eviction))
    drill.let_go(drill.await_agent(after=lost))
    check_measured(drill, (1, "infra_error"), (2, "completed"))


def test_out_of_memory(drill: Drill) -> None:
    """P7: an agent over its own memory has failed by itself: its attempt counts, and is not tried again."""
    status = drill.await_verdict()
    assert status["outcomes"]["agent_error"] == 1, status
    assert status["cells"]["graded"] == status["cells"]["total"] == 3
    assert "out of its own memory" in json.dumps(status["topFailures"])
    assert drill.attempts() == [(1, "agent_error")]
    drill.await_released()


def test_gateway_killed_mid_call(drill: Drill) -> None:
    """P12, P29: what was open at a gateway that dies never happened; the agent is stopped, and its cell begins anew."""
    lost = drill.await_agent(code=CALLING)
    gateway = f"{drill.selector},proctor.dev/role=gateway"
    drill.kubectl("delete", "pods", gateway, "--grace-period=0", "--force")
    await_it("the agent is cut off", lambda: "cut off" in drill.log(lost))
    drill.let_go(drill.await_agent(code=CALLING, after=lost))
    check_measured(drill, (2, "completed"))


def test_run_cancelled(drill: Drill) -> None:
    """A run that is cancelled stops its agents, and keeps the grades that it has."""
    drill.await_agent()
    drill.kubectl("patch", "evalrun", drill.name, "--type=merge", '--patch={"spec": {"cancel": true}}')
    status = check_no_score(drill, "Cancelled", "CancelRequested")
    assert (status["cells"]["graded"], status["cells"]["cancelled"]) == (2, 1)
    assert status["controls"] == {"oracle": "1.0000", "noop": "0.0000"}


def test_run_deleted(drill: Drill) -> None:
    """P34: a run goes at once, in the middle of its work, and takes everything of its own along."""
    drill.await_agent()
    drill.kubectl("delete", "evalrun", drill.name, "--timeout=30s")
    drill.await_removed()


def test_fork_bomb_with_full_scratch(drill: Drill) -> None:
    """S23, S24: an agent that takes all it can get harms itself alone; the one beside it ends as ever."""
    drill.await_agent(code=BOMB, says="no more space")
    bomb = drill.await_agent(code=BOMB, says="no more processes")
    drill.let_go(drill.await_agent(code=BOMB, after=bomb))
    status = drill.await_verdict()
    assert status["cells"]["graded"] == status["cells"]["total"] == 4
    assert {arm["model"]: arm["score"]["mean"] for arm in status["arms"]} == {"newest": SCORE, "loudest": "0.0000"}
    assert drill.attempts() == [(1, "completed"), (1, "time_limit")]
    drill.await_released()


def test_policy_that_allows_all(drill: Drill) -> None:
    """S14: a policy of the namespace that opens the sandboxes ends the run: nothing of it counts."""
    drill.await_agent()
    selector = {"matchExpressions": [{"key": "proctor.dev/run", "operator": "In", "values": [drill.prefix]}]}
    where = drill.installed.namespace
    allow = build_policy("tenant", where, podSelector=selector, policyTypes=["Egress"], egress=[{}])
    drill.installed.kubectl.apply(allow)
    status = check_no_score(drill, "Error", "NetworkNotEnforced")
    assert "NetworkPolicy tenant" in status["summary"]
    enforced = next(each for each in status["conditions"] if each["type"] == "NetworkEnforced")
    assert enforced["status"] == "False"


def test_clickhouse_down_while_recording(drill: Drill) -> None:
    """M-B1, P30: what the store can't take is kept until it can: nothing is lost, or counted twice."""
    agent = drill.await_agent(code=LINGERING, says="answered")
    with without_store(drill.installed):
        drill.let_go(agent)
        await_it("the agent has ended", lambda: drill.phase(agent) == "Succeeded")
        assert drill.attempts() == []
        assert drill.status()["verdict"] == "Pending"
    check_measured(drill, (1, "completed"))
