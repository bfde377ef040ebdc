"""One pass over a suite: state in, actions and status out."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from proctor.api.run import Condition, ConditionStatus, ConditionType, EvalRunStatus, Verdict
from proctor.api.suite import EvalSuiteSpec
from proctor.api.suite_status import EvalSuiteStatus
from proctor.reconcile.suites_plan import CreateRun, DeleteRun, render_run
from proctor.reconcile.suites_seen import RunCause, is_tracked
from support.suites import (
    IMAGE_A,
    IMAGE_B,
    NOW,
    FakeNamespace,
    ended,
    following_spec,
    make_run,
    make_spec,
    make_suite,
    with_ttl,
)

GATED = make_spec(runOnChange=True)
AUDITED = make_spec(runOnChange=True, gate={"enforcement": "Audit"})


def conditions(status: EvalSuiteStatus) -> dict[str, str]:
    return {condition.type.value: condition.status.value for condition in status.conditions}


def holding(status: EvalSuiteStatus) -> Condition:
    """The one condition that is True: exactly one always is."""
    true = [condition for condition in status.conditions if condition.status is ConditionStatus.TRUE]
    assert len(status.conditions) == 3
    assert len(true) == 1
    return true[0]


def gated(spec: EvalSuiteSpec = GATED) -> tuple[FakeNamespace, str]:
    """A namespace whose suite just made the run of its first generation."""
    world = FakeNamespace(make_suite(spec))
    world.settle()
    return world, world.created[0]


def test_a_suite_without_a_gate_is_ready_once_accepted() -> None:
    """A suite's health when nothing gates."""
    world = FakeNamespace(make_suite())
    world.settle()
    status = world.suite.status
    assert (status.observed_generation, status.gate, world.created) == (1, None, [])
    assert holding(status).type is ConditionType.READY
    assert holding(status).reason == "Accepted"


def test_a_suite_that_breaks_a_rule_stalls() -> None:
    """Stalled if the spec can never run."""
    world = FakeNamespace(make_suite(GATED))
    world.settle()
    world.suite = replace(world.suite, spec=None, problem="schedule: names no time", generation=2)
    world.settle()
    status = world.suite.status
    assert holding(status).type is ConditionType.STALLED
    assert (holding(status).reason, holding(status).message) == ("InvalidSpec", "schedule: names no time")
    assert (status.observed_generation, status.gate) == (2, None)


def test_a_new_generation_makes_one_run_and_is_pending_first() -> None:
    """M-A11: observedGeneration stays behind until the generation's own run has ended."""
    world, name = gated()
    status = world.suite.status
    assert status.observed_generation == -1
    assert status.gate is not None
    assert (status.gate.verdict, status.gate.run_ref, status.gate.for_generation) == (Verdict.PENDING, name, 1)
    assert conditions(status) == {"Ready": "False", "Reconciling": "True", "Stalled": "False"}
    world.end(name)
    world.settle()
    world.edit(AUDITED)
    plan = world.decide()
    (create,) = plan.actions
    assert isinstance(create, CreateRun)
    assert create.name != name
    assert create.for_generation == 2
    assert plan.status.observed_generation == 1
    assert plan.status.gate is not None
    assert (plan.status.gate.verdict, plan.status.gate.for_generation) == (Verdict.PENDING, 2)
    assert holding(plan.status).type is ConditionType.RECONCILING


@pytest.mark.parametrize(
    ("spec", "verdict", "kind"),
    [
        (GATED, Verdict.PASS, ConditionType.READY),
        (GATED, Verdict.FAIL, ConditionType.STALLED),
        (GATED, Verdict.INCONCLUSIVE, ConditionType.STALLED),
        (GATED, Verdict.ERROR, ConditionType.STALLED),
        (GATED, Verdict.CANCELLED, ConditionType.STALLED),
        (AUDITED, Verdict.FAIL, ConditionType.READY),
        (AUDITED, Verdict.INCONCLUSIVE, ConditionType.READY),
        (AUDITED, Verdict.CANCELLED, ConditionType.READY),
        (AUDITED, Verdict.ERROR, ConditionType.STALLED),
    ],
)
def test_the_gate_follows_its_run(spec: EvalSuiteSpec, verdict: Verdict, kind: ConditionType) -> None:
    """Verdict, generation and conditions come in one patch."""
    world, name = gated(spec)
    world.end(name, verdict)
    plan = world.decide()
    gate = plan.status.gate
    assert gate is not None
    assert (gate.verdict, gate.run_ref, gate.for_generation) == (verdict, name, 1)
    assert gate.digests.suite == "ab" * 32
    assert plan.status.observed_generation == 1
    assert (holding(plan.status).type, holding(plan.status).reason) == (kind, f"Because{verdict}")


def test_a_gates_verdict_outlives_its_run() -> None:
    """It never changes for the same generation, and what was judged once is not run again."""
    world, name = gated()
    world.end(name, Verdict.FAIL)
    world.settle()
    before = world.suite.status
    del world.runs[name]
    assert world.settle() == 1  # the history's count alone
    after = world.suite.status
    assert (after.gate, after.conditions, after.last_run) == (before.gate, before.conditions, before.last_run)
    assert world.created == [name]


def test_a_run_that_is_deleted_before_its_verdict_is_made_again() -> None:
    """Level-triggered: without it the gate would wait for ever."""
    world, name = gated()
    del world.runs[name]
    world.settle()
    assert world.created == [name, name]


def test_scheduled_runs_never_touch_the_gate() -> None:
    """A bad night must not turn an unchanged suite around."""
    spec = make_spec(runOnChange=True, schedule="0 3 * * *")
    world, name = gated(spec)
    world.end(name)
    world.settle()
    gate = world.suite.status.gate
    world.tick(days=1)
    world.settle()
    trend = world.created[-1]
    assert world.runs[trend].cause is RunCause.SCHEDULE
    world.end(trend, Verdict.FAIL)
    world.settle()
    status = world.suite.status
    assert status.gate == gate
    assert holding(status).type is ConditionType.READY
    assert status.last_run is not None
    assert (status.last_run.name, status.last_run.verdict) == (trend, Verdict.FAIL)


def test_a_changed_image_makes_a_run_of_that_image() -> None:
    """M-A11: a changed MCP image starts a run by itself; the run is of the image that was seen."""
    world = FakeNamespace(make_suite(following_spec()), images={"candidate": IMAGE_A})
    world.settle()
    (first,) = world.created
    assert world.runs[first].spec.servers is not None
    assert [(server.name, server.image) for server in world.runs[first].spec.servers] == [("candidate", IMAGE_A)]
    world.end(first)
    world.settle()
    assert holding(world.suite.status).type is ConditionType.READY
    world.images["candidate"] = IMAGE_B
    world.settle()
    status = world.suite.status
    second = world.created[-1]
    assert second != first
    assert status.gate is not None
    assert (status.gate.verdict, status.gate.run_ref, status.gate.images) == (
        Verdict.PENDING,
        second,
        {"candidate": IMAGE_B},
    )
    assert holding(status).type is ConditionType.RECONCILING


def test_an_image_that_is_not_known_is_awaited() -> None:
    """No run is made of nothing; a suite that has a verdict keeps it while its Deployment rolls out (argo-cd#1826)."""
    world = FakeNamespace(make_suite(following_spec(schedule="0 3 * * *", runRequestId="now")))
    world.settle()
    world.tick(days=1)
    world.settle()
    assert world.created == []
    assert holding(world.suite.status).reason == "AwaitingImage"
    world.images["candidate"] = IMAGE_A
    world.settle()
    assert {world.runs[name].cause for name in world.created} == {RunCause.CHANGE, RunCause.SCHEDULE}
    for name in world.created:
        world.end(name)
    world.settle()
    gate = world.suite.status.gate
    world.images.clear()
    assert world.settle() == 0
    assert world.suite.status.gate == gate


def test_a_request_makes_one_run() -> None:
    """Any new string makes one run, even after that run is gone."""
    world = FakeNamespace(make_suite(make_spec(runRequestId="first")))
    world.settle()
    (name,) = world.created
    assert world.runs[name].cause is RunCause.REQUEST
    del world.runs[name]
    world.settle()
    world.edit(make_spec(runRequestId="second"))
    world.settle()
    assert len(world.created) == 2
    assert world.suite.status.gate is None


def test_a_request_beside_a_change_makes_one_run_of_both() -> None:
    """A request is a new generation, and that makes a run by itself."""
    world, _ = gated()
    world.edit(make_spec(runOnChange=True, runRequestId="again"))
    world.settle()
    assert len(world.created) == 2
    assert world.suite.status.run_request_id == "again"


def test_a_schedule_begins_when_it_is_seen() -> None:
    """The time before it was there is not made up for."""
    world = FakeNamespace(make_suite(make_spec(schedule="0 3 * * *")))
    world.settle()
    plan = world.decide()
    assert world.created == []
    assert plan.wake == NOW.replace(day=1, month=12, hour=3)
    world.now = plan.wake - timedelta(microseconds=1)
    assert world.settle() == 0
    world.now = plan.wake
    world.settle()
    (name,) = world.created
    body = render_run(world.suite, "team", next(iter(plan_of(world, name))))
    assert body["metadata"]["annotations"]["proctor.dev/scheduled-at"] == "2026-12-01T03:00:00Z"


def plan_of(world: FakeNamespace, name: str) -> list[CreateRun]:
    """The action that made a run, decided anew by one who died before the status was written."""
    cron = world.suite.status.schedule
    assert cron is not None
    earlier = world.suite.status.model_copy(
        update={"schedule": cron.model_copy(update={"since": NOW, "next": world.now})}
    )
    again = FakeNamespace(replace(world.suite, status=earlier), now=world.now)
    return [action for action in again.decide().actions if isinstance(action, CreateRun) and action.name == name]


def test_missed_times_are_made_up_for_once_and_none_is_begun_beside_another() -> None:
    """An operator that was away for days starts one trend run, and none while that one goes on."""
    world = FakeNamespace(make_suite(make_spec(schedule="0 3 * * *")))
    world.settle()
    world.tick(days=4)
    world.settle()
    assert len(world.created) == 1
    world.tick(days=1)
    world.settle()
    assert len(world.created) == 1
    world.end(world.created[0])
    world.tick(days=1)
    world.settle()
    assert len(world.created) == 2


def test_another_schedule_is_followed_from_then_on() -> None:
    world = FakeNamespace(make_suite(make_spec(schedule="0 3 * * *")))
    world.settle()
    world.edit(make_spec(schedule="0 11 * * *"))
    world.settle()
    assert world.created == []
    world.edit(make_spec())
    world.settle()
    assert world.suite.status.schedule is None


def test_history_keeps_the_newest_and_what_people_made() -> None:
    """Beyond history.passed and history.failed the oldest of the suite's own runs go."""
    runs = [
        *(make_run(f"pass-{n}", ended(at=NOW - timedelta(minutes=n))) for n in range(4)),
        *(make_run(f"fail-{n}", ended(Verdict.ERROR, at=NOW - timedelta(minutes=n))) for n in range(3)),
        make_run("by-hand", ended(at=NOW - timedelta(days=9)), owned=False, cause=None),
        make_run("open", created=NOW - timedelta(days=9)),
    ]
    world = FakeNamespace(
        make_suite(make_spec(history={"passed": 2, "failed": 1})), runs={run.name: run for run in runs}
    )
    world.settle()
    assert sorted(world.runs) == ["by-hand", "fail-0", "open", "pass-0", "pass-1"]
    assert world.suite.status.history.model_dump() == {"passed": 2, "failed": 1}
    assert world.suite.status.last_run is not None
    assert world.suite.status.last_run.name == "pass-0"


def test_the_gates_run_stays_whatever_the_history() -> None:
    world, name = gated(make_spec(runOnChange=True, history={"passed": 0, "failed": 0}))
    world.end(name)
    world.settle()
    assert list(world.runs) == [name]


def test_nothing_is_deleted_before_what_it_showed_is_written() -> None:
    """P11: a decider that dies in between must find either the run or its verdict."""
    world, name = gated(make_spec(runOnChange=True))
    world.end(name)
    world.runs[name] = with_ttl(world.runs[name], seconds_after_pass=0)
    plan = world.decide()
    assert not plan.actions
    assert plan.changed
    world.apply(plan)
    assert world.decide().actions == (DeleteRun(name, "Expired"),)
    world.settle()
    assert world.created == [name]
    assert world.suite.status.gate is not None
    assert world.suite.status.gate.verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("verdict", "seconds"),
    [
        (Verdict.PASS, 10),
        (Verdict.FAIL, 20),
        (Verdict.INCONCLUSIVE, 20),
        (Verdict.ERROR, 30),
        (Verdict.CANCELLED, 30),
    ],
)
def test_each_verdict_has_its_own_time_to_live(verdict: Verdict, seconds: int) -> None:
    """TtlStrategy; it counts for runs that people made too."""
    run = with_ttl(
        make_run("mine", ended(verdict), owned=False),
        seconds_after_pass=10,
        seconds_after_fail=20,
        seconds_after_error=30,
    )
    world = FakeNamespace(make_suite(), runs={"mine": run})
    world.settle()
    assert world.decide().wake == NOW + timedelta(seconds=seconds)
    world.tick(seconds=seconds)
    assert world.decide().actions == (DeleteRun("mine", "Expired"),)


def test_a_run_that_is_being_deleted_is_not_deleted_again() -> None:
    run = with_ttl(make_run("mine", ended(), deleting=True), seconds_after_pass=0)
    world = FakeNamespace(make_suite(), runs={"mine": run})
    world.settle()
    assert world.decide().empty


@pytest.mark.parametrize("mark", ["argocd.argoproj.io/tracking-id", "kustomize.toolkit.fluxcd.io/name"])
def test_what_a_deployment_tool_applies_is_not_tidied_away(mark: str) -> None:
    """P42: it would be made again for ever."""
    assert is_tracked({"annotations": {mark: "evals"}})
    assert is_tracked({"labels": {mark: "evals"}})
    assert not is_tracked({"name": "mine", "labels": {"app": "evals"}})
    run = with_ttl(make_run("mine", ended(), owned=False, tracked=True), seconds_after_pass=0)
    world = FakeNamespace(make_suite(), runs={"mine": run})
    world.settle()
    assert world.decide().empty
    assert world.decide().wake is None


def test_what_passed_last_is_remembered_without_its_run() -> None:
    """gate.baseline.lastPassed: images of the newest run that passed and ran images."""
    runs = [
        make_run("older", ended(at=NOW - timedelta(hours=2), images={"current": IMAGE_B})),
        make_run("newer", ended(at=NOW - timedelta(hours=1))),
        make_run("failed", ended(Verdict.FAIL)),
        make_run("local", ended(images={})),
    ]
    world = FakeNamespace(make_suite(), runs={run.name: run for run in runs})
    world.settle()
    world.runs.clear()
    world.settle()
    known = world.suite.status.last_passed
    assert known is not None
    assert (known.name, known.images) == ("newer", {"current": IMAGE_A, "candidate": IMAGE_B})


def test_a_suite_with_a_long_name_makes_runs_of_valid_names() -> None:
    world = FakeNamespace(make_suite(GATED, name="n" * 38 + "-" + "n" * 11))
    world.settle()
    (name,) = world.created
    assert len(name) <= 50
    assert "--" not in name


def test_a_suite_of_the_same_name_never_takes_an_older_ones_run() -> None:
    """The uid is in the name: generations begin at 1 again."""
    first, name = gated()
    again = FakeNamespace(make_suite(GATED, uid="other"), runs=dict(first.runs))
    again.settle()
    assert again.created != [name]


def test_a_run_names_its_suite_its_cause_and_its_owner() -> None:
    world = FakeNamespace(make_suite(GATED))
    (action,) = world.decide().actions
    assert isinstance(action, CreateRun)
    body = render_run(world.suite, "team", action)
    assert body["metadata"]["labels"] == {"proctor.dev/suite": "made", "proctor.dev/cause": "Change"}
    assert body["metadata"]["annotations"] == {"proctor.dev/for-generation": "1"}
    (owner,) = body["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == ("5a17", True, False)
    assert body["spec"] == {"suiteRef": {"name": "made"}}


def test_conditions_move_only_when_their_status_does() -> None:
    world, name = gated()
    begun = {condition.type: condition.last_transition_time for condition in world.suite.status.conditions}
    world.tick(hours=1)
    world.runs[name] = replace(world.runs[name], status=EvalRunStatus(observed_generation=1, summary="3 of 9 done"))
    assert world.settle() == 0
    world.end(name, Verdict.FAIL)
    world.settle()
    moved = {c.type for c in world.suite.status.conditions if c.last_transition_time != begun[c.type]}
    assert moved == {ConditionType.RECONCILING, ConditionType.STALLED}
