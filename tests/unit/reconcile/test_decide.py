"""State in, state out: what one pass decides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from proctor.api.gate import Enforcement
from proctor.api.run import ConditionStatus, ConditionType, Phase, RunDigests, Verdict
from proctor.core.ids import AttemptKey, CellKey, Control
from proctor.core.trajectory.outcome import ExitCause, Outcome, ProcessExit
from proctor.reconcile.cells import expand_cells, expand_controls
from proctor.reconcile.decide import decide
from proctor.reconcile.observed import (
    AttemptState,
    DatasetSeen,
    GatewaySeen,
    GraderSeen,
    GraderState,
    GradeSeen,
    Isolation,
    Observed,
    ProbeSeen,
    Readiness,
)
from proctor.reconcile.plan import Plan, render_action
from proctor.reconcile.preparing import MAX_STARTS
from proctor.reconcile.snapshot import RunSnapshot
from support.runs import (
    DIGEST,
    NOW,
    RUBRIC,
    TOOLS,
    UID,
    make_attempt,
    make_fault,
    make_prepared,
    make_record,
    make_run,
    make_suite,
    score_of,
)

SUITE = make_suite()
SCENARIO = "error-root-cause"
CONTROLS = expand_controls(SUITE)
CELLS = expand_cells(SUITE)
FIRST = CELLS[len(CONTROLS)]
PREPARED = make_prepared(SUITE)


def fixed_run(**changes: Any) -> RunSnapshot:
    """A run whose digests were written by an earlier pass."""
    run = make_run(SUITE)
    status = decide(run, PREPARED, NOW).status
    return replace(run, status=status, **changes)


def after_controls(**changes: Any) -> Observed:
    ended = tuple(make_record(cell) for cell in CONTROLS)
    return make_prepared(SUITE, ended=ended, grader=graded(*CONTROLS), **changes)


def graded(*cells: CellKey, **changes: Any) -> GraderSeen:
    grades = {cell: GradeSeen(attempt=1, score=score_of(cell)) for cell in cells}
    seen = GraderSeen(state=GraderState.RUNNING, starts=1, rubric_digest=RUBRIC, grades=grades)
    return replace(seen, **changes)


def finished(score: dict[str, str] | None = None, **changes: Any) -> Observed:
    """Every cell ended and was graded."""
    grades = {
        cell: GradeSeen(
            attempt=1, score=Decimal((score or {}).get(cell.server, "0.8")) if cell.control is None else score_of(cell)
        )
        for cell in CELLS
    }
    grader = GraderSeen(state=GraderState.FINISHED, starts=1, finishing=True, rubric_digest=RUBRIC, grades=grades)
    return make_prepared(SUITE, ended=tuple(make_record(cell) for cell in CELLS), **({"grader": grader} | changes))


@dataclass(frozen=True, kw_only=True)
class Case:
    id: str
    run: RunSnapshot
    observed: Observed
    now: datetime = NOW
    actions: tuple[str, ...] = ()
    verdict: Verdict = Verdict.PENDING
    reason: str = ""
    phase: Phase | None = None


def starts(*cells: CellKey, attempt: int = 1) -> tuple[str, ...]:
    return tuple(f"start attempt {cell}#{attempt}" for cell in cells)


def first_controls(count: int = 2) -> tuple[CellKey, ...]:
    """The controls in the order in which this suite starts them."""
    plan = decide(fixed_run(), PREPARED, NOW)
    keys = [CellKey.parse(render_action(a).removeprefix("start attempt ").split("#")[0]) for a in plan.actions]
    return tuple(keys[:count])


CASES = [
    Case(
        id="a new run prepares its datasets first",
        run=make_run(),
        observed=Observed(),
        actions=("prepare dataset error-root-cause",),
        phase=Phase.PREFLIGHT,
    ),
    Case(
        id="a dataset that is being seeded is awaited",
        run=make_run(),
        observed=Observed(datasets={SCENARIO: DatasetSeen(prepared=Readiness.STARTING)}),
        phase=Phase.SEEDING,
    ),
    Case(
        id="a committed dataset is served, and isolation proven, before anything else",
        run=make_run(),
        observed=Observed(datasets={SCENARIO: DatasetSeen(prepared=Readiness.READY, digest=DIGEST)}),
        actions=("serve dataset error-root-cause", "prove isolation"),
        phase=Phase.ENFORCING,
    ),
    Case(
        id="no process starts before isolation is proven (S12)",
        run=make_run(),
        observed=make_prepared(
            SUITE, isolation=Isolation.UNPROVEN, gateway=GatewaySeen(), probes=None, grader=GraderSeen()
        ),
        actions=("prove isolation",),
        phase=Phase.ENFORCING,
    ),
    Case(
        id="then the gateway starts, which brings the store's schema up to date",
        run=make_run(),
        observed=make_prepared(SUITE, gateway=GatewaySeen(), probes=None, grader=GraderSeen()),
        actions=("start gateway",),
        phase=Phase.ENFORCING,
    ),
    Case(
        id="servers are probed, and the grader starts, once the gateway is ready",
        run=make_run(),
        observed=make_prepared(SUITE, probes=None, grader=GraderSeen()),
        actions=("start grader", "probe servers"),
        phase=Phase.ENFORCING,
    ),
    Case(
        id="a probe that goes on is awaited",
        run=make_run(),
        observed=make_prepared(SUITE, probes=None, probing=True),
        phase=Phase.ENFORCING,
    ),
    Case(
        id="no cell starts before the digests are written",
        run=make_run(),
        observed=PREPARED,
        phase=Phase.CONTROLS,
    ),
    Case(
        id="nor before the rubric is known",
        run=make_run(),
        observed=make_prepared(SUITE, grader=GraderSeen(state=GraderState.RUNNING, starts=1)),
        phase=Phase.CONTROLS,
    ),
    Case(
        id="controls run first, as many as fit (P27)",
        run=fixed_run(),
        observed=PREPARED,
        actions=starts(*first_controls()),
        phase=Phase.CONTROLS,
    ),
    Case(
        id="no more open than parallelism allows",
        run=fixed_run(),
        observed=make_prepared(SUITE, attempts=(make_attempt(CONTROLS[0]), make_attempt(CONTROLS[1]))),
        phase=Phase.CONTROLS,
    ),
    Case(
        id="judged cells wait for the controls' grades, not only for their ends",
        run=fixed_run(),
        observed=make_prepared(SUITE, ended=tuple(make_record(cell) for cell in CONTROLS)),
        phase=Phase.CONTROLS,
    ),
    Case(
        id="an agent that ended is reported to the gateway",
        run=fixed_run(),
        observed=after_controls(
            attempts=(make_attempt(FIRST, state=AttemptState.EXITED), make_attempt(CELLS[-1])),
        ),
        actions=(f"end attempt {FIRST}#1 (exited)",),
        phase=Phase.RUNNING,
    ),
    Case(
        id="an agent past its deadline is stopped",
        run=fixed_run(),
        observed=after_controls(
            attempts=(make_attempt(FIRST), make_attempt(CELLS[-1], running=NOW + timedelta(hours=1)))
        ),
        now=NOW + timedelta(seconds=301),
        actions=(f"stop attempt {FIRST}#1 (deadline)",),
        phase=Phase.RUNNING,
    ),
    Case(
        id="waiting for the provider is not the agent's time (P23)",
        run=fixed_run(),
        observed=after_controls(
            attempts=(
                make_attempt(FIRST, waited_us=60_000_000),
                make_attempt(CELLS[-1], running=NOW + timedelta(hours=1)),
            )
        ),
        now=NOW + timedelta(seconds=301),
        phase=Phase.RUNNING,
    ),
    Case(
        id="a sandbox that does not start is given up (P3, P4)",
        run=fixed_run(),
        observed=after_controls(
            attempts=(
                make_attempt(FIRST, state=AttemptState.STARTING),
                make_attempt(CELLS[-1], running=NOW + timedelta(hours=1)),
            )
        ),
        now=NOW + timedelta(seconds=301),
        actions=(f"stop attempt {FIRST}#1 (lost)",),
        phase=Phase.RUNNING,
    ),
    Case(
        id="a stop that was asked for is not asked for again",
        run=fixed_run(),
        observed=after_controls(
            attempts=(make_attempt(FIRST, stopping=True), make_attempt(CELLS[-1], running=NOW + timedelta(hours=1)))
        ),
        now=NOW + timedelta(seconds=400),
        phase=Phase.RUNNING,
    ),
    Case(
        id="attempts of a gateway that died are stopped, and it is started again",
        run=fixed_run(),
        observed=after_controls(
            gateway=GatewaySeen(starts=1),
            probes=None,
            attempts=(make_attempt(FIRST, state=AttemptState.LOST),),
        ),
        actions=("start gateway", f"stop attempt {FIRST}#1 (cancelled)"),
        phase=Phase.RUNNING,
    ),
    Case(
        id="a suspended run starts nothing new, and lets open cells end (api 2.2)",
        run=fixed_run(suspend=True),
        observed=after_controls(attempts=(make_attempt(FIRST, state=AttemptState.EXITED),)),
        actions=(f"end attempt {FIRST}#1 (exited)",),
        phase=Phase.SUSPENDED,
    ),
    Case(
        id="an open attempt of a cell that has a valid one is stopped",
        run=fixed_run(suspend=True),
        observed=after_controls(attempts=(make_attempt(CONTROLS[0], attempt=2),)),
        actions=(f"stop attempt {CONTROLS[0]}#2 (cancelled)",),
        phase=Phase.SUSPENDED,
    ),
    Case(
        id="when all cells ended the grader is told so",
        run=fixed_run(),
        observed=finished(grader=graded(*CELLS)),
        actions=("finish grading",),
        phase=Phase.GRADING,
    ),
    Case(
        id="a grader that died is started again (P30)",
        run=fixed_run(),
        observed=finished(grader=graded(*CELLS[:3], state=GraderState.FAILED)),
        actions=("start grader",),
        phase=Phase.GRADING,
    ),
    Case(
        id="a cancelled run ends its open cells before it is Cancelled (P35)",
        run=fixed_run(cancel=True),
        observed=after_controls(attempts=(make_attempt(FIRST),)),
        actions=(f"stop attempt {FIRST}#1 (cancelled)",),
        reason="CancelRequested",
    ),
    Case(
        id="a cancelled run tells the gateway of the ends, so that trajectories are kept",
        run=fixed_run(cancel=True),
        observed=after_controls(
            attempts=(make_attempt(FIRST, state=AttemptState.EXITED, exit=ProcessExit(ExitCause.CANCELLED)),)
        ),
        actions=(f"end attempt {FIRST}#1 (cancelled)",),
        reason="CancelRequested",
    ),
    Case(
        id="a run is Cancelled once nothing runs",
        run=fixed_run(cancel=True),
        observed=after_controls(),
        verdict=Verdict.CANCELLED,
        reason="CancelRequested",
        phase=Phase.COMPLETE,
    ),
    Case(
        id="cancelling wins over an error: who asked learns that it was done",
        run=fixed_run(cancel=True),
        observed=after_controls(faults=(make_fault(),)),
        verdict=Verdict.CANCELLED,
        reason="CancelRequested",
    ),
    Case(
        id="a run past its own deadline is an Error",
        run=fixed_run(),
        observed=after_controls(),
        now=NOW + timedelta(seconds=7201),
        verdict=Verdict.ERROR,
        reason="DeadlineExceeded",
    ),
    Case(
        id="a fault ends the run with its own reason",
        run=fixed_run(),
        observed=after_controls(faults=(make_fault(),)),
        verdict=Verdict.ERROR,
        reason="InfrastructureFailed",
    ),
    Case(
        id="a dataset that can't be seeded is an Error (P9)",
        run=make_run(),
        observed=Observed(datasets={SCENARIO: DatasetSeen(prepared=Readiness.FAILED, message="no space")}),
        verdict=Verdict.ERROR,
        reason="SeedingFailed",
    ),
    Case(
        id="a dataset that can't be served is an Error",
        run=make_run(),
        observed=Observed(
            datasets={SCENARIO: DatasetSeen(prepared=Readiness.READY, served=Readiness.FAILED, digest=DIGEST)}
        ),
        verdict=Verdict.ERROR,
        reason="DatasetUnavailable",
    ),
    Case(
        id="sandboxes that are not isolated are an Error, with no agent started (P32)",
        run=make_run(),
        observed=make_prepared(SUITE, isolation=Isolation.BROKEN, gateway=GatewaySeen(), probes=None),
        verdict=Verdict.ERROR,
        reason="NetworkNotEnforced",
    ),
    Case(
        id="a server that does not answer tools/list is an Error (P26)",
        run=make_run(),
        observed=make_prepared(
            SUITE,
            probes=(
                ProbeSeen(server="left", scenario=SCENARIO, tools_digest=TOOLS),
                ProbeSeen(
                    server="right", scenario=SCENARIO, reason="ServerNotReady", message="exit code 3: no module x"
                ),
            ),
        ),
        verdict=Verdict.ERROR,
        reason="ServerNotReady",
    ),
    Case(
        id="a gateway that keeps dying is an Error",
        run=fixed_run(),
        observed=after_controls(gateway=GatewaySeen(starts=MAX_STARTS, message="bind: address in use"), probes=None),
        verdict=Verdict.ERROR,
        reason="GatewayFailed",
    ),
    Case(
        id="a grader that keeps dying is an Error",
        run=fixed_run(),
        observed=finished(grader=graded(*CONTROLS, state=GraderState.FAILED, starts=MAX_STARTS)),
        verdict=Verdict.ERROR,
        reason="GraderFailed",
    ),
    Case(
        id="a judge that can't rank planted answers is an Error (P19)",
        run=fixed_run(),
        observed=after_controls(faults=()).__class__(
            **{
                **{name: getattr(after_controls(), name) for name in Observed.__slots__},
                "grader": graded(*CONTROLS, fault="the judge ranked a planted bad answer over a good one"),
            }
        ),
        verdict=Verdict.ERROR,
        reason="JudgeNotTrusted",
    ),
    Case(
        id="a tool list that changed in the middle is an Error",
        run=fixed_run(),
        observed=after_controls(
            probes=tuple(
                ProbeSeen(server=server.name, scenario=SCENARIO, tools_digest="99" * 32) for server in SUITE.servers
            )
        ),
        verdict=Verdict.ERROR,
        reason="DigestChanged",
    ),
    Case(
        id="equal arms pass",
        run=fixed_run(),
        observed=finished(),
        verdict=Verdict.PASS,
        reason="WithinMaxDrop",
        phase=Phase.COMPLETE,
    ),
    Case(
        id="a drop fails",
        run=fixed_run(),
        observed=finished({"right": "0.5"}),
        verdict=Verdict.FAIL,
        reason="MaxDropExceeded",
        phase=Phase.COMPLETE,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_pass_decides(case: Case) -> None:
    """Each line of the state machine; P3, P4, P9, P19, P23, P26, P27, P30, P32, P35, S12."""
    plan = decide(case.run, case.observed, case.now)
    assert tuple(render_action(action) for action in plan.actions) == case.actions
    assert plan.status.verdict is case.verdict
    assert plan.status.reason == case.reason
    if case.phase is not None:
        assert plan.status.phase is case.phase
    if case.verdict is not Verdict.PENDING:
        assert plan.status.phase is Phase.COMPLETE
        assert plan.status.cells.running == plan.status.cells.pending == 0


def settle(run: RunSnapshot, observed: Observed, now: datetime = NOW) -> tuple[RunSnapshot, Plan]:
    plan = decide(run, observed, now)
    return replace(run, status=plan.status), plan


class TestControls:
    def controls(self, scores: dict[tuple[str, Control], str | None], **changes: Any) -> Observed:
        grades = {}
        for cell in CONTROLS:
            assert cell.control is not None
            text = scores.get((cell.server, cell.control), "1" if cell.control is Control.ORACLE else "0")
            grades[cell] = GradeSeen(attempt=1, score=None if text is None else Decimal(text), reason="no reply")
        grader = GraderSeen(state=GraderState.RUNNING, starts=1, rubric_digest=RUBRIC, grades=grades)
        return make_prepared(SUITE, ended=tuple(make_record(cell) for cell in CONTROLS), grader=grader, **changes)

    def suite_with_sql(self) -> RunSnapshot:
        servers = [
            {"name": name, "stdio": {"command": [name]}, "deniedTools": [], "sqlTool": {"name": "q", "argument": "sql"}}
            for name in ("left", "right")
        ]
        return replace(fixed_run(), suite=make_suite(servers=servers))

    def test_good_controls_let_the_arms_start(self) -> None:
        """P27: the arms start once both controls of every server are in line."""
        plan = decide(fixed_run(), self.controls({}), NOW)
        assert plan.status.phase is Phase.RUNNING
        assert len(plan.actions) == SUITE.parallelism

    def test_a_noop_that_scores_is_the_graders_fault(self) -> None:
        """M-A9, P27."""
        plan = decide(fixed_run(), self.controls({("left", Control.NOOP): "0.3"}), NOW)
        assert (plan.status.verdict, plan.status.reason) == (Verdict.ERROR, "NoopAboveCeiling")

    def test_a_low_oracle_everywhere_is_our_fault(self) -> None:
        """P27."""
        low = {("left", Control.ORACLE): "0.2", ("right", Control.ORACLE): "0.2"}
        plan = decide(self.suite_with_sql(), self.controls(low), NOW)
        assert (plan.status.verdict, plan.status.reason) == (Verdict.ERROR, "OracleBelowFloor")

    def test_a_low_oracle_through_the_candidate_alone_fails_it(self) -> None:
        """P27: the candidate broke what works through the baseline."""
        plan = decide(self.suite_with_sql(), self.controls({("right", Control.ORACLE): "0.2"}), NOW)
        assert (plan.status.verdict, plan.status.reason) == (Verdict.FAIL, "ControlRegression")
        assert plan.status.controls.oracle == Decimal("0.2")

    def test_an_ungraded_control_says_why(self) -> None:
        """P18, P43."""
        plan = decide(fixed_run(), self.controls({("right", Control.ORACLE): None}), NOW)
        assert (plan.status.verdict, plan.status.reason) == (Verdict.ERROR, "ControlsNotMeasured")
        assert "no reply" in plan.status.summary

    def test_the_control_stop_ends_open_cells_first(self) -> None:
        """A stop leaves nothing behind (P35)."""
        observed = self.controls({("left", Control.NOOP): "0.3"}, attempts=(make_attempt(FIRST),))
        plan = decide(fixed_run(), observed, NOW)
        assert plan.status.verdict is Verdict.PENDING
        assert [render_action(action) for action in plan.actions] == [f"stop attempt {FIRST}#1 (cancelled)"]


class TestRetries:
    def test_an_infrastructure_failure_gets_a_new_attempt_with_a_new_number(self) -> None:
        """P1, P2, grading rule 9."""
        failed = make_record(CONTROLS[0], outcome=Outcome.INFRA_ERROR)
        plan = decide(fixed_run(), make_prepared(SUITE, ended=(failed,)), NOW)
        started = [action.key for action in plan.actions if hasattr(action, "key")]
        assert AttemptKey(UID, CONTROLS[0], 1) not in started
        again = decide(
            replace(fixed_run(), suite=make_suite(parallelism=20)), make_prepared(SUITE, ended=(failed,)), NOW
        )
        assert AttemptKey(UID, CONTROLS[0], 2) in [a.key for a in again.actions if hasattr(a, "key")]

    def test_retries_are_bounded(self) -> None:
        """infraRetries: 2 means three attempts."""
        failed = tuple(make_record(CONTROLS[0], n, Outcome.INFRA_ERROR, reason="node gone") for n in (1, 2, 3))
        plan = decide(fixed_run(), make_prepared(SUITE, ended=failed), NOW)
        assert plan.status.cells.infra_errored == 1
        assert f"start attempt {CONTROLS[0]}#4" not in [render_action(action) for action in plan.actions]

    @pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.INFRA_ERROR])
    def test_no_other_outcome_is_retried(self, outcome: Outcome) -> None:
        """An agent can't drop a bad cell by crashing (grading rule 9)."""
        ended = tuple(make_record(cell, outcome=outcome) for cell in CONTROLS)
        plan = decide(fixed_run(), make_prepared(SUITE, ended=ended), NOW)
        assert plan.actions == ()

    def test_a_withdrawn_attempt_counts_against_no_bound_and_keeps_its_number(self) -> None:
        """Ctrl-C is nobody's failure."""
        withdrawn = frozenset(AttemptKey(UID, cell, n) for cell in CONTROLS for n in (1, 2, 3, 4))
        plan = decide(fixed_run(), make_prepared(SUITE, withdrawn=withdrawn), NOW)
        assert plan.status.cells.pending == len(CELLS)
        assert {action.key.attempt for action in plan.actions if hasattr(action, "key")} == {5}

    def test_a_withdrawn_attempt_that_turns_out_valid_counts(self) -> None:
        """Finished cells are never repeated, however late the store acknowledged them (P30)."""
        cell = CONTROLS[0]
        observed = make_prepared(SUITE, ended=(make_record(cell),), withdrawn=frozenset({AttemptKey(UID, cell, 1)}))
        plan = decide(fixed_run(), observed, NOW)
        assert f"start attempt {cell}#2" not in [render_action(action) for action in plan.actions]

    def test_an_infrastructure_record_of_a_withdrawn_attempt_does_not_count(self) -> None:
        """As above, for an attempt whose cut end the gateway recorded."""
        cell = CONTROLS[0]
        ended = tuple(make_record(cell, n, Outcome.INFRA_ERROR) for n in (1, 2, 3))
        withdrawn = frozenset(record.key for record in ended)
        plan = decide(fixed_run(), make_prepared(SUITE, ended=ended, withdrawn=withdrawn), NOW)
        assert plan.status.cells.infra_errored == 0

    def test_a_grade_of_another_attempt_is_not_taken(self) -> None:
        """P22."""
        cell = CONTROLS[0]
        grades = {cell: GradeSeen(attempt=2, score=Decimal(1))}
        observed = make_prepared(SUITE, ended=(make_record(cell),), grader=graded(grades=grades))
        assert decide(fixed_run(), observed, NOW).status.cells.graded == 0


class TestTerminal:
    @pytest.mark.parametrize("verdict", [verdict for verdict in Verdict if verdict is not Verdict.PENDING])
    def test_a_terminal_run_never_changes_its_verdict(self, verdict: Verdict) -> None:
        """The verdict of a run is final, whatever is seen later."""
        done, _ = settle(fixed_run(), finished())
        run = replace(done, status=done.status.model_copy(update={"verdict": verdict}), cancel=True)
        observed = finished({"right": "0"}, faults=(make_fault(),))
        plan = decide(run, observed, NOW + timedelta(days=9))
        assert plan.status.verdict is verdict
        assert [render_action(action) for action in plan.actions] == ["release children"]

    def test_editing_a_finished_run_moves_its_generation_in_one_patch(self) -> None:
        """api 5.1: observedGeneration and verdict are written together."""
        done, _ = settle(fixed_run(), finished())
        plan = decide(replace(done, generation=2), finished(), NOW)
        assert (plan.status.observed_generation, plan.status.verdict) == (2, Verdict.PASS)

    def test_a_terminal_run_without_children_needs_nothing(self) -> None:
        """A second pass is empty."""
        done, _ = settle(fixed_run(), finished())
        assert decide(done, Observed(), NOW).empty


class TestStatus:
    def conditions(self, plan: Plan) -> dict[ConditionType, ConditionStatus]:
        return {condition.type: condition.status for condition in plan.status.conditions}

    def test_conditions_of_a_run_that_goes_on(self) -> None:
        """api 5.1."""
        seen = self.conditions(decide(fixed_run(), after_controls(), NOW))
        assert seen[ConditionType.RECONCILING] is ConditionStatus.TRUE
        assert seen[ConditionType.READY] is seen[ConditionType.STALLED] is ConditionStatus.FALSE
        assert seen[ConditionType.PASSED] is ConditionStatus.UNKNOWN
        assert seen[ConditionType.COMPLETE] is ConditionStatus.FALSE

    @pytest.mark.parametrize(
        ("scores", "enforcement", "ready", "passed"),
        [
            ({}, Enforcement.ENFORCE, ConditionStatus.TRUE, ConditionStatus.TRUE),
            ({"right": "0.2"}, Enforcement.ENFORCE, ConditionStatus.FALSE, ConditionStatus.FALSE),
            ({"right": "0.2"}, Enforcement.AUDIT, ConditionStatus.TRUE, ConditionStatus.FALSE),
        ],
    )
    def test_conditions_of_a_finished_run(
        self, scores: dict[str, str], enforcement: Enforcement, ready: ConditionStatus, passed: ConditionStatus
    ) -> None:
        """api 5.1: Ready is what the gate lets through; Stalled its opposite; never both with Reconciling."""
        gate = {"enforcement": enforcement, "baseline": {"server": "left"}, "maxDrop": "0.05"}
        run = replace(make_run(make_suite(gate=gate)))
        run, _ = settle(run, PREPARED)
        seen = self.conditions(decide(run, finished(scores), NOW))
        assert seen[ConditionType.READY] is ready
        assert seen[ConditionType.STALLED] is not ready
        assert seen[ConditionType.RECONCILING] is ConditionStatus.FALSE
        assert seen[ConditionType.COMPLETE] is ConditionStatus.TRUE
        assert seen[ConditionType.PASSED] is passed

    def test_an_error_is_never_let_through(self) -> None:
        """api 5.2: Audit and Error is Degraded."""
        gate = {"enforcement": "Audit", "minimum": "0.5"}
        run, _ = settle(make_run(make_suite(gate=gate)), PREPARED)
        seen = self.conditions(decide(run, after_controls(faults=(make_fault(),)), NOW))
        assert seen[ConditionType.READY] is ConditionStatus.FALSE
        assert seen[ConditionType.STALLED] is ConditionStatus.TRUE

    def test_a_conditions_time_moves_only_with_its_status(self) -> None:
        """P7: no stale condition, no flapping time."""
        run = fixed_run()
        later = NOW + timedelta(minutes=5)
        before = {c.type: c for c in run.status.conditions}
        for condition in decide(run, after_controls(), later).status.conditions:
            moved = condition.status is not before[condition.type].status
            assert condition.last_transition_time == (later if moved else before[condition.type].last_transition_time)

    def test_digests_are_fixed_before_the_first_cell(self) -> None:
        """P22: all of them, in the pass before the first start."""
        digests = fixed_run().status.digests
        assert digests.suite == DIGEST
        assert digests.datasets == {SCENARIO: DIGEST}
        assert digests.rubric == RUBRIC
        assert digests.tools == {"left": TOOLS, "right": TOOLS}
        assert digests.gate is not None

    def test_summary_and_failures_are_bounded_and_inert(self) -> None:
        """P17: hostile or long text can't break a status, and control signs don't reach a terminal."""
        message = "\x1b[2J" + "x" * 10_000
        plan = decide(fixed_run(), after_controls(faults=(make_fault(message=message),)), NOW)
        assert len(plan.status.summary) <= 256
        assert "\x1b" not in plan.status.summary

    def test_the_worst_cells_are_named(self) -> None:
        """P43."""
        plan = decide(fixed_run(), finished({"right": "0.5"}), NOW)
        assert len(plan.status.top_failures) == 6
        assert plan.status.top_failures[0].cell.startswith("error-root-cause/right/")

    def test_arms_leave_the_controls_out(self) -> None:
        """manifest: controls are counted in cells, not in arms."""
        plan = decide(fixed_run(), finished(), NOW)
        assert [(arm.server, arm.model) for arm in plan.status.arms] == [("left", "newest"), ("right", "newest")]
        assert plan.status.cells.total == len(CELLS)
        assert plan.status.controls.oracle == 1
        assert plan.status.controls.noop == 0

    def test_digests_are_left_open_until_then(self) -> None:
        """A run that never got that far claims nothing."""
        plan = decide(make_run(), Observed(), NOW)
        assert plan.status.digests == RunDigests()
