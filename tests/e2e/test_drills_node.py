"""Drills on the node itself: what all runs stand on is taken away for a while; nothing else may run beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from cluster.configuration import NODE
from cluster.namespace import kill
from cluster.places import Places
from cluster.policies import without_policies
from cluster.running import RunningCluster
from proctor.manifests.names import RUN_LABEL
from support.courses import check_measured, check_no_score
from support.drills import SCORE, Drill, build_spec
from support.installed import await_it

pytestmark = [pytest.mark.cluster, pytest.mark.own_node]


ALONE = frozenset({"test_api_server_restarted", "test_policies_not_enforced", "test_node_drained"})


def build_specs(images: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the suite of all drills."""
    return {"": build_spec(images)}


def test_api_server_restarted(cluster: RunningCluster, drill: Drill) -> None:
    """P13, P14, P29: agents don't notice that the API server is away; the operator finds everything again."""
    await_it("the run has begun", lambda: drill.status().get("phase"))
    restart(cluster)
    agent = drill.await_agent()
    restart(cluster)
    drill.let_go(agent)
    check_measured(drill, (1, "completed"))


def test_policies_not_enforced(drill: Drill) -> None:
    """S12, P32: without an engine for policies no agent starts, not one of a control either."""
    with without_policies(Places.from_environment()):
        status = check_no_score(drill, "Error", "NetworkNotEnforced")
    enforced = next(each for each in status["conditions"] if each["type"] == "NetworkEnforced")
    assert enforced["status"] == "False"
    assert status["cells"]["graded"] == 0
    assert drill.attempts(controls=True) == []


@pytest.mark.drill
def test_node_drained(cluster: RunningCluster, drill: Drill) -> None:
    """P1: what ran on a node that is drained is lost to infrastructure, and begins anew where there is room."""
    lost = drill.await_agent()
    words = ("--force", "--delete-emptydir-data", "--grace-period=5", "--timeout=120s")
    try:
        cluster.kubectl.run("drain", NODE, f"--pod-selector={RUN_LABEL}={drill.prefix}", *words)
    finally:
        cluster.kubectl.run("uncordon", NODE)
    drill.let_go(drill.await_agent(after=lost))
    status = drill.await_verdict()
    assert status["cells"]["graded"] == status["cells"]["total"] == 3
    assert [arm["score"]["mean"] for arm in status["arms"]] == [SCORE]
    assert drill.attempts()[-1] == (2, "completed")
    drill.await_released()


def restart(cluster: RunningCluster) -> None:
    """Kill the API server; return once it answers again."""
    kill(Places.from_environment(), "kube-apiserver")
    await_it("the API server is back", cluster.kubectl.is_ready)
