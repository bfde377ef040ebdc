"""Adaptive replicates: blocks are added until the verdict is settled, from whatever state a crash left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.api.run import AdaptiveStatus, AdaptiveStop, EvalRun, EvalRunSpec, Phase, Verdict
from proctor.api.suite import EvalSuiteSpec, Metadata
from proctor.core.digests import digest_json
from proctor.core.ids import AttemptKey, CellKey
from proctor.core.reports.table import render_result
from proctor.core.stats.quantiles import ONE_SIDE
from proctor.core.stats.sequential import tails_of
from proctor.core.trajectory.outcome import Outcome
from proctor.reconcile.cells import expand_cells, looks_of
from proctor.reconcile.decide import decide
from proctor.reconcile.look import take_look
from proctor.reconcile.observed import GraderState
from proctor.reconcile.result import report_result
from proctor.reconcile.rules import build_rules
from proctor.reconcile.run_cells import render_cells
from proctor.reconcile.settling import settle_progress
from proctor.reconcile.snapshot import RunSnapshot
from support.runs import FakeCluster, list_states, make_run, make_suite, score_of

MAX_PASSES = 200
SUITE = make_suite(adaptive={"maxReplicates": 6})
LOOKS = (3, 4, 5, 6)
Score = Callable[[CellKey], Decimal | None]


def equal(cell: CellKey) -> Decimal | None:
    """Scripted and without variation: settled by the first block."""
    return score_of(cell)


def noisy(cell: CellKey) -> Decimal | None:
    """As good as the baseline but for its spread: never settled by so few cells."""
    if cell.control is not None:
        return score_of(cell)
    swing = Decimal("0.1") * (1 if (cell.replicate % 2 == 0) == (cell.server == "left") else -1)
    return Decimal("0.7") + swing


def worse(cell: CellKey) -> Decimal | None:
    """Plainly worse, but not so plainly that the first block is enough."""
    if cell.control is not None or cell.server == "left":
        return score_of(cell)
    return Decimal("0.35") + Decimal("0.1") * (cell.replicate % 3 - 1)


KINDS: dict[str, tuple[Score, Verdict, int, AdaptiveStop]] = {
    "settled-at-once": (equal, Verdict.PASS, 3, AdaptiveStop.SETTLED),
    "settled-on-the-way": (worse, Verdict.FAIL, 4, AdaptiveStop.SETTLED),
    "never-settled": (noisy, Verdict.INCONCLUSIVE, 6, AdaptiveStop.MAX_REPLICATES),
}


def step(run: RunSnapshot, cluster: FakeCluster) -> tuple[RunSnapshot, bool]:
    """Pass once; counts add up and nothing that was begun is ever taken back (P29)."""
    plan = decide(run, cluster.observed, cluster.now)
    cells = plan.status.cells
    rest = cells.graded + cells.ungraded + cells.infra_errored + cells.cancelled + cells.running + cells.pending
    assert cells.total == rest >= run.status.cells.total
    adaptive = plan.status.adaptive
    assert adaptive is not None
    assert cells.total == len(expand_cells(run.suite, adaptive.replicates))
    assert adaptive.replicates == LOOKS[adaptive.block - 1]
    assert (adaptive.stopped is None) == (plan.status.verdict is Verdict.PENDING)
    cluster.apply(plan)
    assert {key.cell for key in cluster.started} <= set(expand_cells(run.suite, adaptive.replicates))
    return replace(run, status=plan.status), plan.empty


def drive(run: RunSnapshot, cluster: FakeCluster) -> RunSnapshot:
    for _ in range(MAX_PASSES):
        run, is_empty = step(run, cluster)
        if is_empty and run.status.terminal:
            return run
        cluster.tick()
    raise AssertionError(f"no end after {MAX_PASSES} passes: {run.status.phase} {run.status.cells}")


STATES = {
    kind: list_states(FakeCluster(SUITE, score=score), most_passes=MAX_PASSES) for kind, (score, *_) in KINDS.items()
}
EVERY_STATE = [pytest.param(kind, at, id=f"{kind}-{at}") for kind, found in STATES.items() for at in range(len(found))]


def check_end(run: RunSnapshot, cluster: FakeCluster, kind: str) -> None:
    _, verdict, replicates, stopped = KINDS[kind]
    status = run.status
    assert status.adaptive is not None
    assert (status.verdict, status.adaptive.replicates, status.adaptive.stopped) == (verdict, replicates, stopped)
    assert status.cells.graded == status.cells.total == len(expand_cells(SUITE, replicates))
    assert len(cluster.started) == len(set(cluster.started))


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_are_added_until_the_verdict_is_settled(kind: str) -> None:
    """Adaptive: until settled or capped; each block in every arm and scenario; controls are run once."""
    _, _, replicates, _ = KINDS[kind]
    cluster = FakeCluster(SUITE, score=KINDS[kind][0])
    run = drive(make_run(SUITE), cluster)
    check_end(run, cluster, kind)
    started = Counter(key.cell for key in cluster.started)
    assert started == Counter(expand_cells(SUITE, replicates))
    assert f"; {replicates} of at most 6 replicates" in run.status.summary
    assert run.suite is SUITE


def test_a_block_begins_when_all_before_it_is_graded() -> None:
    """Adaptive: no cell of a block starts before the last look has left the verdict open; the grader stays."""
    cluster = FakeCluster(SUITE, score=noisy)
    run = make_run(SUITE)
    for _ in range(MAX_PASSES):
        known = len(cluster.started)
        run, is_empty = step(run, cluster)
        for key in cluster.started[known:]:
            before = [look for look in LOOKS if look < key.cell.replicate]
            if before:
                graded = cluster.observed.grader.grades.keys()
                assert set(expand_cells(SUITE, before[-1])) <= graded
        if is_empty and run.status.terminal:
            break
        cluster.tick()
    assert cluster.observed.grader.starts == 1


@pytest.mark.parametrize(("kind", "at"), EVERY_STATE)
def test_a_decider_killed_anywhere_goes_on(kind: str, at: int) -> None:
    """P12, P30, adaptive: the extension is derived from what exists, so the run ends as if nothing had happened."""
    run, cluster = STATES[kind][at]
    cluster = cluster.copy()
    check_end(drive(run, cluster), cluster, kind)


@pytest.mark.parametrize(("kind", "at"), EVERY_STATE)
def test_an_executor_killed_anywhere_resumes(kind: str, at: int) -> None:
    """P30, adaptive: finished cells are never repeated and no block is forgotten, though grades are read back late."""
    run, cluster = STATES[kind][at]
    cluster = cluster.copy()
    if run.status.terminal:
        return
    finished = {record.key.cell for record in cluster.observed.ended}
    cluster.crash_executor()
    cluster.observed = replace(cluster.observed, grader=replace(cluster.observed.grader, grades={}))
    before = len(cluster.started)
    run = drive(run, cluster)
    check_end(run, cluster, kind)
    assert not finished & {key.cell for key in cluster.started[before:]}


def test_cancelling_in_every_state_adds_nothing() -> None:
    """P35, adaptive: a request to cancel begins no block."""
    for run, state in STATES["never-settled"]:
        cluster = state.copy()
        if run.status.terminal:
            continue
        known = {key.cell for key in cluster.started}
        ended = drive(replace(run, cancel=True), cluster)
        assert ended.status.verdict is Verdict.CANCELLED
        assert ended.status.adaptive is not None
        assert ended.status.adaptive.stopped is AdaptiveStop.HALTED
        assert known == {key.cell for key in cluster.started}
        assert ended.status.adaptive.replicates == max([3, *(cell.replicate for cell in known)])


def test_a_finished_grader_is_not_asked_again() -> None:
    """Adaptive: once no more attempts come, none do, even if a grade that was missing leaves the verdict open."""
    cluster = FakeCluster(SUITE, score=equal)
    run = make_run(SUITE)
    for _ in range(MAX_PASSES):
        run, _ = step(run, cluster)
        if cluster.observed.grader.finishing:
            break
        cluster.tick()
    grades = {
        cell: replace(grade, score=noisy(cell)) if cell.control is None else grade
        for cell, grade in cluster.observed.grader.grades.items()
    }
    cluster.observed = replace(
        cluster.observed, grader=replace(cluster.observed.grader, state=GraderState.FINISHED, grades=grades)
    )
    run = drive(run, cluster)
    assert run.status.adaptive == AdaptiveStatus(
        replicates=3, max_replicates=6, block=1, blocks=4, stopped=AdaptiveStop.HALTED
    )


def test_what_more_cells_cannot_settle_ends_at_once() -> None:
    """Adaptive, NoBaseline: an earlier pass does not come from more replicates."""
    suite = make_suite(
        adaptive={"maxReplicates": 6}, gate={"enforcement": "Audit", "baseline": {"lastPassed": True}, "maxDrop": "0.1"}
    )
    cluster = FakeCluster(suite, score=noisy)
    run = drive(make_run(suite), cluster)
    assert (run.status.reason, run.status.adaptive and run.status.adaptive.replicates) == ("NoBaseline", 3)


def test_ungraded_cells_that_decide_get_more_replicates() -> None:
    """Grading rule 7b, adaptive: the candidate's ungraded cells as 0 leave it open, so more cells are run."""

    def score(cell: CellKey) -> Decimal | None:
        return None if cell.server == "right" and cell.replicate == 1 and cell.control is None else equal(cell)

    gate = {"enforcement": "Enforce", "baseline": {"server": "left"}, "maxDrop": "0.05", "maxUngradedPercent": 50}
    suite = make_suite(adaptive={"maxReplicates": 6}, gate=gate)
    run = drive(make_run(suite), FakeCluster(suite, score=score))
    assert (run.status.reason, run.status.cells.ungraded) == ("UngradedDecide", 1)
    assert run.status.adaptive is not None
    assert run.status.adaptive.stopped is AdaptiveStop.MAX_REPLICATES


def test_a_suspended_run_begins_no_cell_of_a_block() -> None:
    """api 2.2, adaptive: suspend stops new cells, those of a new block too."""
    suspended = [
        (replace(run, suspend=True), cluster.copy())
        for run, cluster in STATES["never-settled"]
        if run.status.phase is Phase.GRADING
    ]
    assert suspended
    for run, cluster in suspended:
        before = len(cluster.started)
        for _ in range(12):
            run, _ = step(run, cluster)  # noqa: PLW2901 - the run as its last pass left it
            cluster.tick()
        assert len(cluster.started) == before


def test_a_block_that_fails_beside_its_infrastructure_ends_in_an_error() -> None:
    """Adaptive: a budget that is exceeded at a look ends the run; no more is spent on a broken machine."""
    doomed = expand_cells(SUITE)[-1]
    cluster = FakeCluster(
        SUITE, score=noisy, outcome=lambda key: Outcome.INFRA_ERROR if key.cell == doomed else Outcome.COMPLETED
    )
    run = drive(make_run(SUITE), cluster)
    assert (run.status.verdict, run.status.reason) == (Verdict.ERROR, "TooManyInfraErrors")
    assert run.status.adaptive is not None
    assert (run.status.adaptive.replicates, run.status.adaptive.stopped) == (3, AdaptiveStop.HALTED)


fates = st.sampled_from(["graded", "graded", "graded", "ungraded", "infra", "flaky", "gave_up"])
MOST = expand_cells(SUITE, 6)


@settings(max_examples=40, deadline=None)
@given(
    plan=st.lists(fates, min_size=len(MOST), max_size=len(MOST)),
    crash=st.integers(0, 60),
    stop=st.none() | st.integers(0, 60),
)
def test_total_is_always_the_sum_of_the_rest(plan: list[str], crash: int, stop: int | None) -> None:
    """P29, adaptive: in every status ever written, while the run grows, whatever crashes, whenever it is cancelled."""
    fate = dict(zip(MOST, plan, strict=True))

    def outcome(key: AttemptKey) -> Outcome:
        lost = fate[key.cell] == "infra" or (fate[key.cell] == "flaky" and key.attempt == 1)
        return Outcome.INFRA_ERROR if lost else Outcome.COMPLETED

    cluster = FakeCluster(LOOSE, outcome=outcome, score=lambda cell: None if fate[cell] == "ungraded" else noisy(cell))
    run = make_run(LOOSE)
    for number in range(MAX_PASSES):
        if number == crash and not run.status.terminal:
            cluster.crash_executor()
        if stop is not None and number == stop:
            run = replace(run, cancel=True)
        run, is_empty = step(run, cluster)  # checks the counts
        if is_empty and run.status.terminal:
            break
        cluster.tick()
    assert run.status.terminal
    assert run.status.cells.running == run.status.cells.pending == 0


def loose_gate() -> dict[str, Any]:
    return {"enforcement": "Enforce", "baseline": {"server": "left"}, "maxDrop": "0.05"} | {
        "maxInfraErroredPercent": 100,
        "maxUngradedPercent": 100,
    }


LOOSE: EvalSuiteSpec = make_suite(adaptive={"maxReplicates": 6}, gate=loose_gate())


def test_each_look_has_its_own_level() -> None:
    """Adaptive, always-valid bound: a look's intervals have that look's tail; a fixed run has the usual one."""
    tails = tails_of(LOOKS)
    assert looks_of(SUITE) == LOOKS
    assert [build_rules(SUITE, seed=1, replicates=look).tail for look in LOOKS] == list(tails)
    assert build_rules(SUITE, seed=1).tail == tails[0]
    assert build_rules(make_suite(), seed=1, replicates=3).tail == ONE_SIDE
    assert looks_of(make_suite()) == (3,)
    assert looks_of(make_suite(adaptive={"maxReplicates": 3})) == (3,)


def test_the_table_says_how_many_replicates_were_used_and_why_no_more() -> None:
    """Adaptive replicates: status and table; the table's figures are those that the verdict rests on."""
    cluster = FakeCluster(SUITE, score=worse)
    run = drive(make_run(SUITE), cluster)
    cells = render_cells(run, cluster.observed, {})
    document = EvalRun(
        metadata=Metadata(name="quick-1"), spec=EvalRunSpec.model_validate({"suiteRef": {"name": "quick"}})
    ).model_copy(update={"status": run.status})
    report = report_result(document, SUITE, cells)
    assert "4 of at most 6 replicates, then the verdict was settled (block 2 of 4)" in report.growth
    assert report.growth.split(";")[0] in " ".join(render_result(report).split())
    (shown,), (status,) = report.comparisons, run.status.comparisons
    assert shown.delta is not None
    assert status.high is not None
    assert float(status.high) == pytest.approx(shown.delta.high, abs=5e-5)
    assert len(cells) == run.status.cells.total


def test_growing_changes_neither_suite_nor_digests() -> None:
    """Adaptive: the frozen suite and what the run was fixed to stay as they were."""
    before = digest_json(SUITE.to_file())
    for run, _ in STATES["never-settled"]:
        if run.status.digests.suite is not None:
            assert run.status.digests == STATES["never-settled"][-1][0].status.digests
    assert digest_json(SUITE.to_file()) == before


def test_what_was_settled_stays_settled() -> None:
    """Adaptive: looking again at the same cells says the same, whoever looks."""
    cluster = FakeCluster(SUITE, score=worse)
    run = drive(make_run(SUITE), cluster)
    again = decide(replace(run, status=make_run(SUITE).status), cluster.observed, cluster.now)
    assert again.status.adaptive is not None
    assert again.status.adaptive.replicates == 4
    look = take_look(run, cluster.observed, cluster.now)
    assert settle_progress(run, look.progress).verdict.value == run.status.verdict.value
