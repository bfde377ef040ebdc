"""`proctor show`: a run's cells stand in line."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from proctor.cli.app import app
from proctor.cli.outcome import render_outcome
from proctor.core.reports.tool_table import build_tools_json
from proctor.local.session import RunOutcome
from support.finished_runs import Played, make_finished_run, suite_of


def test_cells_are_a_table_and_a_wrong_name_lists_some(tmp_path: Path) -> None:
    """M-A8: every column begins where its title does, and no list claims more than there is."""
    make_finished_run(tmp_path, name="made-261130-120000-0001", suite=suite_of(12))
    call = CliRunner().invoke
    lines = call(app, ["show", "last", "--data-dir", str(tmp_path)]).output.splitlines()
    title = next(index for index, line in enumerate(lines) if line.startswith("cell "))
    rows = [line for line in lines[title + 2 :] if "/" in line]
    assert len(rows) > 6
    ended = lines[title].index("ended")
    assert all(row[ended - 1] == " " and row[ended] != " " for row in rows)
    unknown = call(app, ["show", "last", "none-such", "--data-dir", str(tmp_path)])
    assert unknown.exit_code == 64
    assert unknown.output.rstrip().endswith("…")


def test_a_run_without_a_call_has_no_tools() -> None:
    """M-A8: nothing is a list of nothing, for machines."""
    assert build_tools_json([]) == []


@pytest.mark.parametrize(("minimum", "verdict"), [("1", "Fail"), ("0", "Pass")])
def test_what_is_no_pass_says_what_to_do_next(tmp_path: Path, minimum: str, verdict: str) -> None:
    """P43: a verdict that asks for something names it where it is printed, not in the report alone."""
    suite = suite_of(12, gate={"enforcement": "Audit", "minimum": minimum})
    finished = make_finished_run(tmp_path, suite=suite, play=lambda _cell, _chance: Played(score=Decimal("0.75")))
    assert finished.run.status.verdict == verdict
    output = CliRunner().invoke(app, ["show", "last", "--data-dir", str(tmp_path)]).output
    assert ("next: " in output) == (verdict != "Pass")


def test_what_to_do_next_names_the_file_that_was_given(tmp_path: Path) -> None:
    """P43: a hint after a run can be copied, whatever the suite's file is called."""
    suite = suite_of(12, gate={"enforcement": "Audit", "minimum": "0.9"})
    finished = make_finished_run(
        tmp_path, suite=suite, play=lambda _cell, chance: Played(score=Decimal(chance.choice(["0.75", "1"])))
    )
    assert finished.run.status.verdict == "Inconclusive"
    outcome = RunOutcome(
        run=finished.run, suite=finished.suite, cells=finished.cells, directory=finished.directory, timed_out=False
    )
    assert " 'my suites/gate.yaml' --" in render_outcome(outcome, suite_file="'my suites/gate.yaml'")
