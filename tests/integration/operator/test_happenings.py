"""What happens to a run on a cluster while it goes on, and what its status says of it then."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proctor.adapters.kube.kinds import EVAL_RUN, EVAL_SUITE, EVENT, NETWORK_POLICY, POD
from proctor.api.run import ConditionStatus, ConditionType, EvalRunStatus, Phase, Verdict
from proctor.core.trajectory.outcome import Outcome
from proctor.errors import Retryable
from support.memory_api import Json
from support.operated import Operated, make_api, operate, put_run

SMALL: dict[str, Any] = {
    "servers": [{"name": "left", "stdio": {"command": ["left"]}, "deniedTools": []}],
    "replicates": 1,
    "gate": {"enforcement": "Audit", "minimum": "0.5"},
}


def is_running(status: EvalRunStatus) -> bool:
    return status.phase is Phase.RUNNING


def condition(status: EvalRunStatus, kind: ConditionType) -> ConditionStatus:
    return {item.type: item.status for item in status.conditions}[kind]


def sandboxes(operated: Operated) -> list[Json]:
    return [pod for pod in operated.api.every(POD) if "-a-" in pod["metadata"]["name"]]


async def drive_until_at_work(operated: Operated) -> Json:
    """Drive until an agent works, and hold it there; return its pod."""
    await operated.drive(until=is_running)
    operated.pods.hold = lambda _opaque_id: True
    for _ in range(5):
        await operated.make_pass()
        operated.pods.turn()
        operated.api.pass_time(1)
    pods = [pod for pod in sandboxes(operated) if pod["status"].get("phase") == "Running"]
    assert pods
    return pods[0]


def let_go(operated: Operated) -> None:
    operated.pods.hold = lambda _opaque_id: False


async def test_no_agent_starts_where_no_engine_enforces_policies() -> None:
    """P32, S9, S12: the canary reaches what it must not; verdict Error, NetworkEnforced=False, zero agents started."""
    operated = operate(suite=SMALL)
    operated.pods.canary_opens = ("10.96.0.1:443",)
    status = await operated.drive()
    assert (status.verdict, status.reason) == (Verdict.ERROR, "NetworkNotEnforced")
    assert "10.96.0.1:443" in status.summary
    assert condition(status, ConditionType.NETWORK_ENFORCED) is ConditionStatus.FALSE
    assert operated.started == set()
    assert "NetworkNotEnforced" in {event["reason"] for event in operated.api.every(EVENT)}


async def test_a_tenants_allow_all_policy_ends_the_run() -> None:
    """P33, S14: policies add up, so another's that selects sandboxes opens them."""
    operated = operate(suite=SMALL)
    await drive_until_at_work(operated)
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "allow-all", "namespace": "team"},
        "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]},
    }
    operated.api.put(policy)
    operated.api.pass_time(10)
    status = await operated.drive()
    assert (status.verdict, status.reason) == (Verdict.ERROR, "NetworkNotEnforced")
    assert "allow-all" in status.summary


async def test_a_policy_of_the_run_that_somebody_deletes_ends_it() -> None:
    """S14: what isolates the sandboxes has to be there as long as they are."""
    operated = operate(suite=SMALL)
    await drive_until_at_work(operated)
    name = next(item["metadata"]["name"] for item in operated.api.every(NETWORK_POLICY) if "sandbox" in str(item))
    operated.api.remove(NETWORK_POLICY, name)
    operated.api.pass_time(10)
    status = await operated.drive()
    assert (status.verdict, status.reason) == (Verdict.ERROR, "NetworkNotEnforced")


async def test_a_deleted_pod_is_an_infrastructure_failure_and_tried_again() -> None:
    """P2, P4, P29: the attempt counts as lost, the cell gets another one, and is counted once."""
    operated = operate(suite=SMALL)
    pod = await drive_until_at_work(operated)
    opaque_id = pod["metadata"]["labels"]["proctor.dev/attempt"]
    operated.gateway.open_attempts[opaque_id] = (operated.gateway.open_attempts[opaque_id][0], 3)
    cell = operated.gateway.open_attempts[opaque_id][0].cell
    operated.api.remove(POD, pod["metadata"]["name"])
    let_go(operated)
    status = await operated.drive()
    assert status.cells.graded == status.cells.total == 3
    attempts = [(record.key.attempt, record.outcome) for record in operated.gateway.ended if record.key.cell == cell]
    assert attempts == [(1, Outcome.INFRA_ERROR), (2, Outcome.COMPLETED)]


async def test_a_gateway_that_starts_anew_voids_the_open_attempts() -> None:
    """P4: what was at work has lost its only door; each gets a new attempt."""
    operated = operate(suite=SMALL)
    await drive_until_at_work(operated)
    operated.gateway.die()
    let_go(operated)
    status = await operated.drive()
    assert status.cells.graded == status.cells.total == 3
    assert {record.key.attempt for record in operated.gateway.ended if record.key.cell.control is None} == {2}


async def test_an_attempt_that_is_lost_keeps_its_number_when_its_pod_is_deleted() -> None:
    """P4, P29: two attempts under one number would mix what they did; and what was lost counts as lost."""
    operated = operate(suite={**SMALL, "limits": {"infraRetries": 1}})
    await drive_until_at_work(operated)
    for _ in range(2):
        operated.gateway.die()
        for pod in sandboxes(operated):
            operated.api.remove(POD, pod["metadata"]["name"])
        for _ in range(5):
            await operated.make_pass()
            operated.pods.turn()
            operated.api.pass_time(1)
    let_go(operated)
    status = await operated.drive()
    assert len(operated.gateway.voided) == 2
    assert (status.cells.graded, status.cells.infra_errored, status.cells.total) == (2, 1, 3)


async def test_a_gateway_that_is_silent_for_a_moment_costs_nobody_an_attempt() -> None:
    """P4: to be busy is not to be gone."""
    operated = operate(suite=SMALL)
    await drive_until_at_work(operated)
    operated.gateway.silent = True
    for _ in range(10):
        if operated.passes % 4 == 0:
            await operated.kill()
        operated.pods.turn()
        operated.api.pass_time(1)
        with pytest.raises(Retryable, match="does not answer"):
            await operated.make_pass()
    operated.gateway.silent = False
    let_go(operated)
    status = await operated.drive()
    assert status.cells.graded == status.cells.total == 3
    assert {record.key.attempt for record in operated.gateway.ended} == {1}


async def test_a_cancelled_run_keeps_its_grades() -> None:
    """M-A9: `spec.cancel` ends what is open, keeps what is graded, and leaves nothing running."""
    operated = operate(suite=SMALL)
    await drive_until_at_work(operated)
    operated.api.respec(EVAL_RUN, "quick-1", {"cancel": True})
    status = await operated.drive()
    assert (status.verdict, status.reason) == (Verdict.CANCELLED, "CancelRequested")
    assert (status.cells.graded, status.cells.cancelled) == (2, 1)
    assert status.observed_generation == 2
    assert operated.api.every(POD) == []


async def test_a_suspended_run_starts_nothing_until_it_goes_on() -> None:
    """M-A9: open cells end, no new ones start."""
    operated = operate(suite={**SMALL, "replicates": 3, "parallelism": 1})
    await drive_until_at_work(operated)
    operated.api.respec(EVAL_RUN, "quick-1", {"suspend": True})
    let_go(operated)
    for _ in range(15):
        await operated.make_pass()
        operated.pods.turn()
        operated.api.pass_time(1)
    assert (operated.status.phase, operated.status.verdict) == (Phase.SUSPENDED, Verdict.PENDING)
    assert sandboxes(operated) == []
    assert condition(operated.status, ConditionType.RECONCILING) is ConditionStatus.FALSE
    operated.api.respec(EVAL_RUN, "quick-1", {"suspend": None})
    status = await operated.drive()
    assert status.cells.graded == status.cells.total == 5


async def test_a_run_waits_for_its_suite_but_not_for_ever() -> None:
    """M-A8: it may be applied first; a name that is wrong ends in an error that says so."""
    api = make_api()
    operated = operate(suite=SMALL)
    operated.api, operated.pods.api = api, api
    put_run(api)
    report = await operated.make_pass()
    assert not report.finished
    assert (operated.status.verdict, operated.status.reason) == (Verdict.PENDING, "SuiteNotFound")
    api.pass_time(301)
    report = await operated.make_pass()
    assert report.finished
    assert (operated.status.verdict, operated.status.reason) == (Verdict.ERROR, "SuiteNotFound")
    assert condition(operated.status, ConditionType.STALLED) is ConditionStatus.TRUE


async def test_a_server_without_an_image_is_refused_at_once() -> None:
    """M-A8: the message names the server and the fix; nothing is started."""
    operated = operate(suite=SMALL, serverImages={})
    status = await operated.drive()
    assert (status.verdict, status.reason) == (Verdict.ERROR, "ImageMissing")
    assert operated.api.every(POD) == []


async def test_the_run_never_reads_its_suite_again() -> None:
    """M-A8: what changes in the suite while a run goes on is another run's."""
    operated = operate(suite=SMALL)
    await drive_until_at_work(operated)
    operated.api.respec(EVAL_SUITE, "quick", {"replicates": 7})
    let_go(operated)
    await operated.kill()
    status = await operated.drive()
    assert status.cells.total == 3


async def test_a_deleted_run_is_left_alone() -> None:
    """P34, M-A9: all that it has goes with it, by its owner references, and nothing holds it back."""
    operated = operate(suite=SMALL)
    await drive_until_at_work(operated)
    assert all("finalizers" not in body["metadata"] for body in operated.api.objects.values())
    operated.api.remove(EVAL_RUN, "quick-1")
    report = await operated.make_pass()
    assert report.finished
    left = {plural for plural, namespace, _ in operated.api.objects if namespace == "team"}
    assert left == {"evalsuites", "events"}


async def test_a_sandbox_names_nothing() -> None:
    """S20: a sandbox's pod says neither scenario nor server nor model nor run."""
    operated = operate(suite=SMALL)
    pod = await drive_until_at_work(operated)
    pod["metadata"].pop("ownerReferences")  # which no sandbox can read
    text = json.dumps({"metadata": pod["metadata"], "spec": pod["spec"]})
    for word in ("error-root-cause", "left", "newest", "quick"):
        assert word not in text


async def test_a_pod_that_never_starts_is_given_up() -> None:
    """P4: past limits.pendingDeadlineSeconds an attempt is infrastructure's failure, and its cell in the end too."""
    limits = {"activeDeadlineSeconds": 7200, "pendingDeadlineSeconds": 5, "infraRetries": 1}
    operated = operate(suite={**SMALL, "limits": limits})
    await operated.drive(until=is_running)
    operated.pods.stuck = True
    status = await operated.drive()
    assert (status.cells.graded, status.cells.infra_errored) == (2, 1)
    assert status.top_failures[0].message.startswith("not started within 5 s")
