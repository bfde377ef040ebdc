"""The final table: what it says, how wide it is, and when it is coloured."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from proctor.api.fields import NameRef
from proctor.api.model import Judge
from proctor.api.run import EvalRun, EvalRunSpec, EvalRunStatus, JudgeStatus, Verdict
from proctor.api.suite import Metadata
from proctor.core.ids import CellKey
from proctor.core.reports.grid import Align, Grid, render_grid, width_of
from proctor.core.reports.run_cells import read_observation
from proctor.core.reports.table import WIDTH, ResultReport, render_result
from proctor.core.stats import CellFate
from proctor.core.trajectory.outcome import Outcome
from proctor.reconcile.result import report_result
from support.manifests import suite


def cell(server: str, replicate: int, score: str | None, **changes: Any) -> dict[str, Any]:
    return {
        "cell": str(CellKey("error-root-cause", server, "newest", replicate)),
        "state": "graded" if score is not None else "ungraded",
        "score": score,
        "outcome": "completed",
        "toolCalls": 7,
        "inputTokens": 11_000,
        "outputTokens": 1_000,
        "usd": None,
        "seconds": "3.250",
    } | changes


CONTROLS = [
    cell(server, 1, score, cell=f"error-root-cause/{server}/~{control}/1")
    for server in ("current", "candidate")
    for control, score in (("oracle", "1"), ("noop", "0"))
]
CELLS = [
    *CONTROLS,
    *(cell("current", index, score) for index, score in enumerate(("0.8", "0.7", "0.75"), start=1)),
    *(cell("candidate", index, score) for index, score in enumerate(("0.9", "0.9", "0.9"), start=1)),
]


def run(verdict: Verdict = Verdict.PASS) -> EvalRun:
    status = EvalRunStatus(verdict=verdict, reason="WithinMaxDrop", summary="candidate × newest 0.90 is fine")
    return EvalRun(metadata=Metadata(name="made-1"), spec=EvalRunSpec(suite_ref=NameRef(name="made")), status=status)


def report(cells: list[dict[str, Any]] | None = None, verdict: Verdict = Verdict.PASS) -> ResultReport:
    return report_result(run(verdict), suite().spec, cells or CELLS)


def test_the_table_says_what_each_arm_showed_how_they_differ_and_why() -> None:
    """M-A10, table: score and interval, calls, tokens, time, consistency, outcomes, difference, verdict, why."""
    told = render_result(report())
    lines = told.splitlines()
    assert lines[0] == "error-root-cause"
    current = next(line for line in lines if line.startswith("current *"))
    for part in ("newest", "0.75 [", "7.0", "36 k", "3.2 s", "67 %", "3 completed"):
        assert part in current
    candidate = next(line for line in lines if line.startswith("candidate "))
    assert "0.90 exact" in candidate
    difference = next(line for line in lines if line.startswith("candidate × newest  current"))
    assert "+0.15 [" in difference
    assert "controls: oracle 1.00, noop 0.00; scores by checks alone, no judge; * baseline; exact: " in told
    assert lines[-1] == "Pass (WithinMaxDrop): candidate × newest 0.90 is fine"


def test_the_judge_and_its_agreement_are_told() -> None:
    """Grading rule 6: agreement of votes is reported; with one vote there is none to report."""
    judge = {"anthropic": {"model": "claude-judge", "secretKeyRef": {"name": "a", "key": "k"}}, "votes": 3}
    judged = suite().spec.model_copy(update={"judge": Judge.model_validate(judge)})
    for agreement, told in ((Decimal("0.8125"), "judge claude-judge, votes 3, agreement 0.81;"), (None, "votes 3;")):
        done = run()
        status = JudgeStatus(model="claude-judge", votes=3, agreement=agreement)
        done = done.model_copy(update={"status": done.status.model_copy(update={"judge": status})})
        table = render_result(report_result(done, judged, CELLS))
        assert told in table
        assert "no judge" not in table


def test_the_verdict_is_the_runs_never_made_anew() -> None:
    """Manifest: a terminal run never changes its verdict."""
    assert "\nCancelled (" in render_result(report(verdict=Verdict.CANCELLED))


def test_unknown_cost_is_left_out_and_known_cost_is_shown() -> None:
    """Statistics: unknown price ⇒ no USD, never 0."""
    assert "USD" not in render_result(report())
    priced = [cell("current", index, "0.8", usd="0.1234") for index in (1, 2, 3)]
    told = render_result(report([*CONTROLS, *priced, *(cell("candidate", index, "0.8") for index in (1, 2, 3))]))
    assert "USD" in told
    assert "0.37" in told
    candidate = next(line for line in told.splitlines() if line.startswith("candidate "))
    assert "–  3.2 s" in candidate


def test_lost_cells_are_counted_beside_outcomes() -> None:
    """Statistics: ungraded and infrastructure cells are shown, not hidden."""
    cells = [
        *CONTROLS,
        cell("current", 1, None),
        cell("current", 2, None, state="infra_errored", outcome=None),
        cell("current", 3, "0.8", outcome="time_limit"),
        cell("candidate", 1, "0.8"),
    ]
    told = render_result(report(cells))
    assert "1 completed, 1 time limit, 1 ungraded, 1 infra" in told
    assert "0.80 [?]" in next(line for line in told.splitlines() if line.startswith("current *"))


def test_several_scenarios_are_shown_one_by_one_and_together() -> None:
    """M-A10: arms are compared per scenario; the clustered interval stands beside the one that is used."""
    more = [each | {"cell": each["cell"].replace("error-root-cause", "latency-spike")} for each in CELLS]
    told = render_result(report([*CELLS, *more]))
    headings = [line for line in told.splitlines() if line in {"error-root-cause", "latency-spike", "all scenarios"}]
    assert headings == ["error-root-cause", "latency-spike", "all scenarios"]
    assert "clustered" in told


@pytest.mark.parametrize("colour", [False, True])
def test_colour_is_the_callers_choice(colour: bool) -> None:
    """Table: colour optional."""
    assert ("\x1b[" in render_result(report(), colour=colour)) is colour


def test_the_table_fits_a_hundred_columns() -> None:
    """Table: outcomes move below the table where they would make it too wide."""
    figures = report().by_scenario
    many = dict.fromkeys(Outcome, 2)
    wide = replace(report(), by_scenario=tuple(replace(each, outcomes=many, usd=Decimal(3)) for each in figures))
    table = [line for line in render_result(wide).splitlines() if "newest" in line and "×" not in line]
    assert max(map(len, table)) <= WIDTH
    assert "  current × newest: 2 agent error" in render_result(wide)


def test_a_run_without_cells_still_has_its_verdict() -> None:
    """Faults: an error before the first cell."""
    told = render_result(report_result(run(Verdict.ERROR), suite().spec, []))
    assert "controls: oracle –, noop –" in told
    assert "Error (WithinMaxDrop)" in told


@pytest.mark.parametrize(
    ("state", "fate"),
    [
        ("graded", CellFate.GRADED),
        ("ungraded", CellFate.UNGRADED),
        ("infra_errored", CellFate.INFRA_ERRORED),
        ("cancelled", CellFate.CANCELLED),
        ("pending", CellFate.CANCELLED),
    ],
)
def test_each_state_of_run_json_is_read(state: str, fate: CellFate) -> None:
    """Manifest: run.json is the EvalRun and its cells."""
    line = cell("current", 1, "0.5" if fate is CellFate.GRADED else None, state=state)
    assert read_observation(line).fate is fate


def test_columns_align_whatever_the_script() -> None:
    """Table: wide and combining signs take the columns that a terminal gives them."""
    grid = Grid(("a", "b"), (Align.LEFT, Align.RIGHT), (("日本", "1"), ("e\u0301", "22")))
    lines = render_grid(grid)
    assert {width_of(line) for line in lines} == {8}
