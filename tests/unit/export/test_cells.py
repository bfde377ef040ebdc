"""`proctor export`: cells as lines of JSON and as a table."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from proctor.cli.app import app
from proctor.core.export.cells import COLUMNS, render_cell_row, render_header
from support.finished_runs import FinishedRun, make_finished_run, suite_of


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return make_finished_run(tmp_path_factory.mktemp("export"), suite=suite_of(12))


def export(made: FinishedRun, *words: str) -> str:
    data_dir = made.directory.path.parents[1]
    result = CliRunner().invoke(app, ["export", "last", "--data-dir", str(data_dir), *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_lines_of_json_are_the_cells_of_the_run(made: FinishedRun) -> None:
    """M-D5: every cell with its marks, as run.json has it, under the run's name."""
    found = [json.loads(line) for line in export(made).splitlines()]
    assert [{**cell, "run": made.directory.name} for cell in made.cells] == found


def test_table_has_a_row_per_cell(made: FinishedRun, tmp_path: Path) -> None:
    """M-D5: a spreadsheet opens it, and it says what run.json says."""
    path = tmp_path / "cells.csv"
    assert export(made, "--format", "csv", "--output", str(path)) == ""
    rows = list(csv.DictReader(io.StringIO(path.read_text(), newline="")))
    assert len(rows) == len(made.cells)
    assert rows[-1].keys() == set(COLUMNS)
    for row, cell in zip(rows, made.cells, strict=True):
        assert (row["score"], row["toolCalls"]) == (cell["score"], str(cell["toolCalls"]))
        assert row["programmatic"] == cell["programmatic"]["score"]
        assert row["usd"] == ""


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"], ids=repr)
def test_formulas_stay_text(text: str) -> None:
    """Agents and servers choose words of a row; no spreadsheet may compute them."""
    line = "\n".join([render_header(), render_cell_row("run-1", {"reason": text, "server": text})])
    (row,) = csv.DictReader(io.StringIO(line, newline=""))
    assert row["reason"] == row["server"] == f"'{text}"


def test_quotes_and_lines_stay_in_their_cell() -> None:
    """A reason of several lines with quotes and commas is one field."""
    line = "\n".join([render_header(), render_cell_row("run-1", {"reason": 'a "b",\nc'})])
    (row,) = csv.DictReader(io.StringIO(line, newline=""))
    assert row["reason"] == 'a "b",\nc'


def test_what_a_format_lacks_is_refused(made: FinishedRun) -> None:
    """Bad usage is said, exit 64, and nothing is written."""
    data_dir = made.directory.path.parents[1]
    words = ["export", "last", "--data-dir", str(data_dir), "--format", "csv", "--of", "events"]
    result = CliRunner().invoke(app, words)
    assert (result.exit_code, result.stdout) == (64, "")
    assert "only --format jsonl" in result.stderr


def test_failed_export_leaves_the_old_file(made: FinishedRun, tmp_path: Path) -> None:
    """A file is replaced wholly or not at all: this run has no results here."""
    path = tmp_path / "spans.jsonl"
    path.write_text("earlier")
    words = ["export", "last", "--data-dir", str(made.directory.path.parents[1]), "--format", "otlp", "-o", str(path)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 64
    assert path.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [path]
