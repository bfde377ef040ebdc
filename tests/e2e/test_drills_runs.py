"""More drills: what people, agents and servers do to a run, and what runs do to one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from proctor.manifests.names import Role
from support.courses import Course, check_measured, check_no_score
from support.drills import CALLING, DEAF, Drill, build_spec
from support.installed import await_it

pytestmark = [pytest.mark.cluster, pytest.mark.drill]

ABSENT_SECRET = "of-another-namespace"


def build_specs(images: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the suites of drills that have a special one, by test."""
    patient, deaf = build_spec(images), build_spec(images, DEAF)
    reference = {"name": ABSENT_SECRET, "key": "api-key"}
    opus = {"name": "opus", "anthropic": {"model": "claude-opus-4-5", "secretKeyRef": reference}}
    return {
        "test_toolbox_crashed": build_spec(images, CALLING),
        "test_deadline_with_term_ignored": deaf | {"agent": deaf["agent"] | {"deadlineSeconds": 30}},
        "test_secret_of_another_namespace": patient
        | {"models": [opus], "limits": {"pendingDeadlineSeconds": 120, "infraRetries": 0}},
    } | {"": patient}


def test_quota_too_small(course: Course) -> None:
    """P3, P43: a namespace that can't hold the run's pods says so before there is one, and what to raise."""
    kubectl, where = course.installed.kubectl, course.installed.namespace
    metadata = {"name": "small", "namespace": where}
    kubectl.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"pods": "3"}}})
    try:
        drill = Drill.start(course.installed, "quota-too-small", course.specs[""])
        check_refused(drill, "QuotaTooSmall", "ResourceQuota small allows pods 3")
    finally:
        kubectl.run("delete", "resourcequota", "small", f"--namespace={where}")


def test_runtime_class_missing(course: Course) -> None:
    """S26, P43: an Error before anything is made, instead of pods that are pending."""
    spec = {**course.specs[""], "sandbox": {"runtimeClassName": "not-there"}}
    drill = Drill.start(course.installed, "runtime-class-missing", spec)
    check_refused(drill, "RuntimeClassMissing", 'RuntimeClass "not-there" not found')


def check_refused(drill: Drill, reason: str, words: str) -> None:
    """See that a run ends before it has begun."""
    status = drill.await_verdict()
    assert (status["verdict"], status["reason"]) == ("Error", reason), status["summary"]
    assert words in status["summary"]
    drill.await_removed()
    drill.remove()


def test_secret_of_another_namespace(course: Course, drill: Drill) -> None:
    """S28, S29: a suite gets Secrets of its own namespace alone, and says which it has not got."""
    secret = {"apiVersion": "v1", "kind": "Secret", "stringData": {"api-key": "not-yours"}}
    metadata = {"name": ABSENT_SECRET, "namespace": course.installed.release}
    course.installed.kubectl.apply(secret | {"metadata": metadata})
    status = check_no_score(drill, "Error", "GatewayFailed")
    assert ABSENT_SECRET in status["summary"]
    assert "not-yours" not in str(status)


def test_toolbox_crashed(drill: Drill) -> None:
    """P26: a server under test that dies in the middle of a call is what is judged; the cell goes on with the next."""
    agent = drill.await_agent(code=CALLING)
    toolbox = f"{drill.selector},proctor.dev/role={Role.TOOLBOX}"
    drill.kubectl("delete", "pods", toolbox, "--grace-period=0", "--force")
    await_it("the server is back", lambda: drill.is_ready(Role.TOOLBOX))
    drill.let_go(agent)
    check_measured(drill, (1, "completed"))


def test_deadline_with_term_ignored(drill: Drill) -> None:
    """P25, S25: an agent that doesn't listen to TERM is dead a moment after its deadline."""
    agent = drill.await_agent(code=DEAF)
    status = drill.await_verdict()
    assert status["cells"]["graded"] == status["cells"]["total"] == 3
    assert status["outcomes"]["time_limit"] == 1
    assert drill.attempts() == [(1, "time_limit")]
    assert agent not in drill.children("pods")
    drill.await_released()


def test_suspended(drill: Drill) -> None:
    """A suspended run starts nothing new, and goes on where it was."""
    drill.patch("evalrun", {"spec": {"suspend": True}})
    await_it("the run rests", lambda: drill.status().get("phase") == "Suspended")
    status = drill.status()
    assert (status["verdict"], status["cells"]["running"]) == ("Pending", 0)
    assert drill.agents() == []
    drill.patch("evalrun", {"spec": {"suspend": False}})
    drill.let_go(drill.await_agent())
    check_measured(drill, (1, "completed"))


def test_suite_changed(drill: Drill) -> None:
    """P30: a run is of the suite as it was when it began."""
    agent = drill.await_agent()
    before = drill.status()["digests"]
    drill.patch("evalsuite", {"spec": {"replicates": 9, "models": [{"name": "x", "scripted": {"policy": "loudest"}}]}})
    drill.let_go(agent)
    check_measured(drill, (1, "completed"))
    assert drill.status()["digests"] == before


def test_two_suites_on_one_dataset(course: Course, drill: Drill) -> None:
    """P36, P41: two runs on equal data at once see the same rows, each as a user of its own."""
    other = Drill.start(course.installed, "the-other-suite", course.specs[""])
    agents = {run: run.await_agent() for run in (drill, other)}
    for run, agent in agents.items():
        run.let_go(agent)
    for run in agents:
        check_measured(run, (1, "completed"))
    assert drill.status()["digests"]["datasets"] == other.status()["digests"]["datasets"]
    other.remove()
