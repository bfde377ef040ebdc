"""The status of a suite: its gate, its newest runs, and the conditions that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from proctor.api.gate import Enforcement
from proctor.api.run import Condition, ConditionType, EvalRunStatus, Verdict
from proctor.api.suite import EvalSuiteSpec
from proctor.api.suite_status import ArmScore, EvalSuiteStatus, GateStatus, HistoryStatus, LastPassed, LastRun
from proctor.reconcile.conditions import Description, is_let_through, renew_conditions, say_holds
from proctor.reconcile.suites_seen import RunSeen, SuiteSeen, SuiteSnapshot
from proctor.reconcile.suites_starting import Starts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Health:
    """Where a suite stands, as its three conditions say it; none of them True is not a state."""

    holds: ConditionType
    reason: str
    message: str


def build_suite_status(
    suite: SuiteSnapshot, spec: EvalSuiteSpec, seen: SuiteSeen, starts: Starts, *, now: datetime
) -> EvalSuiteStatus:
    """Return the status after a pass over a suite that can run."""
    gate = _follow_gate(suite, spec, seen, starts)
    settled = not spec.run_on_change or _is_settled(suite, gate)
    health = _tell_health(suite, spec, gate, starts)
    before = suite.status
    return EvalSuiteStatus(
        # The generation counts as observed once its run has ended: until then nothing may read a verdict from here.
        observed_generation=suite.generation if settled else before.observed_generation,
        gate=gate,
        last_run=_find_last_run(suite, seen),
        last_passed=_find_last_passed(before, seen),
        schedule=starts.schedule,
        run_request_id=starts.request,
        history=_count_history(seen),
        conditions=_build_conditions(suite, health, now),
    )


def build_refusal(suite: SuiteSnapshot, seen: SuiteSeen, now: datetime) -> EvalSuiteStatus:
    """Return the status of a suite that can never run as it is."""
    health = _Health(holds=ConditionType.STALLED, reason="InvalidSpec", message=suite.problem)
    return suite.status.model_copy(
        update={
            "observed_generation": suite.generation,
            "gate": None,
            "last_run": _find_last_run(suite, seen),
            "last_passed": _find_last_passed(suite.status, seen),
            "history": _count_history(seen),
            "conditions": _build_conditions(suite, health, now),
        }
    )


def _find_last_passed(before: EvalSuiteStatus, seen: SuiteSeen) -> LastPassed | None:
    """Return the newest run that passed and whose images are known; what was known stays known without the run."""
    passed = [run for run in seen.runs if run.status.verdict is Verdict.PASS and run.status.images]
    newest = max(passed, key=_age_key, default=None)
    known = before.last_passed
    if newest is None or (known is not None and (known.time, known.name) >= _age_key(newest)):
        return known
    return LastPassed(name=newest.name, images=newest.status.images, time=newest.finished)


def _find_last_run(suite: SuiteSnapshot, seen: SuiteSeen) -> LastRun | None:
    newest = max((run for run in seen.runs if run.status.terminal), key=_age_key, default=None)
    known = suite.status.last_run
    if newest is None or (known is not None and (known.time, known.name) >= _age_key(newest)):
        return known
    return LastRun(
        name=newest.name, verdict=newest.status.verdict, scores=_read_scores(newest.status), time=newest.finished
    )


def _age_key(run: RunSeen) -> tuple[datetime, str]:
    return run.finished, run.name


def _read_scores(status: EvalRunStatus) -> tuple[ArmScore, ...]:
    return tuple(
        ArmScore(server=arm.server, model=arm.model, score=arm.score) for arm in status.arms if arm.score is not None
    )


def _count_history(seen: SuiteSeen) -> HistoryStatus:
    verdicts = [run.status.verdict for run in seen.runs if run.owned and run.status.terminal and not run.deleting]
    passed = verdicts.count(Verdict.PASS)
    return HistoryStatus(passed=passed, failed=len(verdicts) - passed)


def _follow_gate(suite: SuiteSnapshot, spec: EvalSuiteSpec, seen: SuiteSeen, starts: Starts) -> GateStatus | None:
    if not spec.run_on_change:
        return None
    if starts.gate_run is None:
        # While a Deployment rolls out, the verdict on what ran until now stands.
        return suite.gate
    known = suite.gate
    if known is not None and known.run_ref == starts.gate_run and known.verdict.terminal:
        return known
    bare = GateStatus(
        verdict=Verdict.PENDING,
        run_ref=starts.gate_run,
        for_generation=suite.generation,
        images=dict(seen.images),
    )
    run = next((run for run in seen.runs if run.name == starts.gate_run), None)
    if run is None or not run.status.terminal:
        return bare
    status = run.status
    told = {"verdict": status.verdict, "reason": status.reason, "summary": status.summary, "digests": status.digests}
    return bare.model_copy(update=told)


def _is_settled(suite: SuiteSnapshot, gate: GateStatus | None) -> bool:
    return gate is not None and gate.for_generation == suite.generation and gate.verdict.terminal


def _tell_health(suite: SuiteSnapshot, spec: EvalSuiteSpec, gate: GateStatus | None, starts: Starts) -> _Health:
    if not spec.run_on_change:
        return _Health(holds=ConditionType.READY, reason="Accepted", message="nothing gates; runOnChange is off")
    if gate is None:
        names = ", ".join(starts.awaiting)
        text = f"imageFrom of {names}: no such Deployment and container, or it is rolling out"
        return _Health(holds=ConditionType.RECONCILING, reason="AwaitingImage", message=text)
    if not _is_settled(suite, gate):
        text = f"run {gate.run_ref} has no verdict yet"
        return _Health(holds=ConditionType.RECONCILING, reason="AwaitingVerdict", message=text)
    return _judge_gate(gate, spec.gate.enforcement)


def _judge_gate(gate: GateStatus, enforcement: Enforcement) -> _Health:
    let_through = is_let_through(gate.verdict, enforcement)
    return _Health(
        holds=ConditionType.READY if let_through else ConditionType.STALLED,
        reason=gate.reason or gate.verdict.value,
        message=f"{gate.verdict}: {gate.summary}" if gate.summary else gate.verdict.value,
    )


def _build_conditions(suite: SuiteSnapshot, health: _Health, now: datetime) -> tuple[Condition, ...]:
    kinds = (ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED)
    described: Mapping[ConditionType, Description] = {
        kind: (say_holds(kind is health.holds), health.reason, health.message) for kind in kinds
    }
    return renew_conditions(described, suite.status.conditions, generation=suite.generation, now=now)
