"""Passes end: from every state that a crash can leave, and a second pass finds nothing to do."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.api.run import Verdict
from proctor.core.ids import AttemptKey, CellKey
from proctor.core.trajectory.outcome import Outcome
from proctor.reconcile.decide import decide
from proctor.reconcile.snapshot import RunSnapshot
from support.runs import FakeCluster, cells_of, list_states, make_run, make_suite

MAX_PASSES = 120
SUITE = make_suite()
CELLS = cells_of(SUITE)


def step(run: RunSnapshot, cluster: FakeCluster) -> tuple[RunSnapshot, bool]:
    plan = decide(run, cluster.observed, cluster.now)
    cluster.apply(plan)
    return replace(run, status=plan.status), plan.empty


def drive(run: RunSnapshot, cluster: FakeCluster) -> tuple[RunSnapshot, int]:
    for passes in range(1, MAX_PASSES):
        run, is_empty = step(run, cluster)
        if is_empty and run.status.terminal:
            return run, passes
        cluster.tick()
    raise AssertionError(f"no end after {MAX_PASSES} passes: {run.status.phase} {run.status.cells}")


def test_a_run_ends_and_stays_as_it_ended() -> None:
    """P12, P13, P14: passes alone drive a run to its verdict; later passes change nothing."""
    cluster = FakeCluster(SUITE)
    run, _ = drive(make_run(SUITE), cluster)
    assert run.status.verdict is Verdict.PASS
    assert run.status.cells.graded == run.status.cells.total == len(CELLS)
    assert len(cluster.started) == len(CELLS)
    assert cluster.most_open <= SUITE.parallelism
    for _ in range(3):
        run, is_empty = step(run, cluster)
        assert is_empty
        cluster.tick()


def test_controls_start_before_any_judged_cell() -> None:
    """P27."""
    cluster = FakeCluster(SUITE)
    drive(make_run(SUITE), cluster)
    kinds = [key.cell.control is None for key in cluster.started]
    assert kinds == sorted(kinds)


def test_replayed_passes_change_nothing() -> None:
    """Each pass is idempotent: deciding and applying twice without news is the same as once (P11)."""
    cluster = FakeCluster(SUITE)
    run = make_run(SUITE)
    for _ in range(MAX_PASSES):
        run, _ = step(run, cluster)
        for _ in range(3):
            run, _ = step(run, cluster)
        assert len(cluster.started) == len(set(cluster.started))
        if run.status.terminal:
            break
        cluster.tick()
    assert run.status.verdict is Verdict.PASS


STATES = list_states(FakeCluster(SUITE), most_passes=MAX_PASSES)


@pytest.mark.parametrize("index", range(len(STATES)))
def test_an_operator_killed_anywhere_goes_on(index: int) -> None:
    """P12, P30: a new decider with the same children reaches the same verdict, and counts nothing twice."""
    run, cluster = STATES[index]
    cluster = cluster.copy()
    run, _ = drive(run, cluster)
    assert run.status.verdict is Verdict.PASS
    assert run.status.cells.graded == len(CELLS)
    assert len(cluster.started) == len(set(cluster.started))


@pytest.mark.parametrize("index", range(len(STATES)))
def test_an_executor_killed_anywhere_resumes(index: int) -> None:
    """P30: one machine's children die with their executor; finished cells are never repeated."""
    run, cluster = STATES[index]
    cluster = cluster.copy()
    if run.status.terminal:
        return
    finished = {record.key.cell for record in cluster.observed.ended}
    cluster.crash_executor()
    before = len(cluster.started)
    run, _ = drive(run, cluster)
    assert run.status.verdict is Verdict.PASS
    assert not finished & {key.cell for key in cluster.started[before:]}
    assert len(cluster.started) == len(set(cluster.started))


@pytest.mark.parametrize("index", range(len(STATES)))
def test_a_gateway_that_dies_anywhere_costs_attempts_only(index: int) -> None:
    """Its open attempts are void and tried anew, as infrastructure failures."""
    run, cluster = STATES[index]
    cluster = cluster.copy()
    if run.status.terminal or cluster.observed.gateway.starts == 0:
        return
    cluster.crash_gateway()
    run, _ = drive(run, cluster)
    assert run.status.verdict is Verdict.PASS
    assert run.status.cells.graded == len(CELLS)


def test_a_cell_that_infrastructure_always_fails_ends() -> None:
    """Bounded retries: the run ends, and its other cells are graded."""
    doomed = CELLS[-1]
    cluster = FakeCluster(SUITE, outcome=lambda key: Outcome.INFRA_ERROR if key.cell == doomed else Outcome.COMPLETED)
    run, _ = drive(make_run(SUITE), cluster)
    assert run.status.cells.infra_errored == 1
    assert run.status.cells.graded == len(CELLS) - 1
    assert [key.attempt for key in cluster.started if key.cell == doomed] == [1, 2, 3]
    assert run.status.reason == "TooManyInfraErrors"
    assert run.status.summary.endswith(": the node went away")


def test_cancelling_in_every_state_ends_cancelled_with_nothing_left() -> None:
    """P35."""
    for run, state in STATES:
        cluster = state.copy()
        if run.status.terminal:
            continue
        ended, _ = drive(replace(run, cancel=True), cluster)
        assert ended.status.verdict is Verdict.CANCELLED
        assert not any(attempt.exit is None for attempt in cluster.observed.attempts)


def test_a_suspended_run_rests_and_goes_on() -> None:
    """api 2.2: suspend stops new cells, lets running ones end."""
    cluster = FakeCluster(SUITE)
    run = make_run(SUITE)
    for _ in range(12):
        run, _ = step(run, cluster)
        cluster.tick()
    run = replace(run, suspend=True)
    for _ in range(10):
        run, _ = step(run, cluster)
        cluster.tick()
    run, is_empty = step(run, cluster)
    assert is_empty
    assert not cluster.observed.attempts
    run, _ = drive(replace(run, suspend=False), cluster)
    assert run.status.verdict is Verdict.PASS


fates = st.sampled_from(["graded", "ungraded", "infra", "flaky", "gave_up"])


@settings(max_examples=60, deadline=None)
@given(
    plan=st.lists(fates, min_size=len(CELLS), max_size=len(CELLS)),
    crash=st.integers(0, 40),
    stop=st.none() | st.integers(0, 40),
)
def test_total_is_always_the_sum_of_the_rest(plan: list[str], crash: int, stop: int | None) -> None:
    """P29: in every status ever written, whatever cells do, whatever crashes, whenever it is cancelled."""
    fate: dict[CellKey, str] = dict(zip(CELLS, plan, strict=True))

    def outcome(key: AttemptKey) -> Outcome:
        match fate[key.cell]:
            case "infra":
                return Outcome.INFRA_ERROR
            case "flaky":
                return Outcome.INFRA_ERROR if key.attempt == 1 else Outcome.COMPLETED
            case "gave_up":
                return Outcome.GAVE_UP
            case _:
                return Outcome.COMPLETED

    def score(cell: CellKey) -> Decimal | None:
        return None if fate[cell] == "ungraded" else Decimal("0.5")

    cluster = FakeCluster(SUITE, outcome=outcome, score=score)
    run = make_run(SUITE)
    for number in range(MAX_PASSES):
        if number == crash and not run.status.terminal:
            cluster.crash_executor()
        if stop is not None and number == stop:
            run = replace(run, cancel=True)
        run, is_empty = step(run, cluster)
        cells = run.status.cells
        rest = cells.graded + cells.ungraded + cells.infra_errored + cells.cancelled + cells.running + cells.pending
        assert cells.total == rest == len(CELLS)
        outcomes = run.status.outcomes.model_dump().values()
        assert sum(outcomes) <= cells.total
        if is_empty and run.status.terminal:
            break
        cluster.tick()
    assert run.status.terminal
    assert run.status.cells.running == run.status.cells.pending == 0
