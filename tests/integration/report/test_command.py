"""`proctor report`: from a data dir to one file."""

from __future__ import annotations

import asyncio
import random
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from proctor.bootstrap.run_parts import LOWEST, MOST_WITH_BODIES, ShownAttempts, choose_cells, read_parts
from proctor.cli.app import app
from proctor.core.ids import CellKey
from proctor.core.reports.page import FEW_CELLS, render_page
from proctor.core.trajectory.events import Status
from proctor.local.reading import open_stored_run
from proctor.reconcile.run_page import add_stored, build_run_facts
from support.finished_runs import FinishedRun, Played, make_finished_run, serve_runs, suite_of
from support.reports import ReadPage, read_page

pytestmark = pytest.mark.engine


def play(_cell: CellKey, chance: random.Random) -> Played:
    tools = (("run_query", Status.OK), ("run_query", Status.SERVER_ERROR), ("list_tables", Status.OK))
    return Played(score=Decimal(chance.choice(["0.5", "1"])), tools=tools, texts="a row of telemetry\n" * 30)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    root = tmp_path_factory.mktemp("data")
    run = make_finished_run(root, suite=suite_of(12), play=play)

    async def store() -> None:
        async with serve_runs(root, run):
            pass

    asyncio.run(store())
    return run


def write(run: FinishedRun, *words: str) -> tuple[Path, ReadPage]:
    root = run.directory.path.parents[1]
    done = CliRunner().invoke(app, ["report", "last", "--data-dir", str(root), *words])
    assert done.exit_code == 0, done.output
    path = Path(done.stdout.strip())
    return path, read_page(path.read_text("utf-8"))


def test_writes_one_file_beside_run_json_and_says_where(stored: FinishedRun) -> None:
    """D5, M-A8: what the store has of every cell is in it: calls, true durations, results, answers, marks."""
    path, page = write(stored)
    assert path == stored.directory.path / "report.html"
    assert [cell["cell"] for cell in page.cells] == [cell["cell"] for cell in stored.cells]
    judged = [cell for cell in page.cells if "~" not in cell["cell"]]
    for cell in judged:
        calls = [event for event in cell["events"] if event["kind"] == "tool_call"]
        assert [call["ms"] for call in calls] == [21, 22, 23]
        assert [call.get("status") for call in calls] == [None, "server_error", None]
        assert calls[0]["said"]["text"].startswith("a row of telemetry\na row")
        assert cell["answer"]["text"].startswith("cart-service fails")
        assert "of" not in cell["answer"]
    assert "12 server" not in page.texts("td")
    assert "3 server" in page.texts("td")


def test_the_file_may_be_anywhere(stored: FinishedRun, tmp_path: Path) -> None:
    """D5: `--output` says where."""
    path, page = write(stored, "--output", str(tmp_path / "shared.html"))
    assert path == tmp_path / "shared.html"
    assert len(page.cells) == len(stored.cells)


def test_a_folder_that_is_not_there_is_an_error_that_says_so(stored: FinishedRun, tmp_path: Path) -> None:
    """P28: no traceback, and nothing half written."""
    root = stored.directory.path.parents[1]
    words = ["report", "last", "--data-dir", str(root), "--output", str(tmp_path / "no" / "such.html")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 3
    assert "such.html" in done.stderr
    assert "Traceback" not in done.output


def test_a_data_dir_without_results_is_an_error_that_says_so(tmp_path: Path) -> None:
    """P28: a run whose results are elsewhere says which option is missing."""
    make_finished_run(tmp_path)
    done = CliRunner().invoke(app, ["report", "last", "--data-dir", str(tmp_path)])
    assert done.exit_code == 64
    assert "--clickhouse-url" in done.stderr


def test_many_cells_make_the_page_that_one_process_makes(tmp_path: Path) -> None:
    """Report: thousands of cells are read and packed by all cores; to the byte the page is that of a single process."""
    run = make_finished_run(tmp_path, suite=suite_of(600), play=play)

    async def make_alone() -> str:
        async with serve_runs(tmp_path, run), open_stored_run(tmp_path, run.uid) as stored:
            parts = await read_parts(ShownAttempts.of(stored, run.cells))
        assert len(parts.trajectories) == len(run.cells) > FEW_CELLS
        return render_page(
            add_stored(build_run_facts(run.run, run.suite, run.cells, version=version("proctor")), parts)
        )

    alone = asyncio.run(make_alone())
    path, page = write(run)
    assert path.read_text("utf-8") == alone
    assert [cell["cell"] for cell in page.cells] == [cell["cell"] for cell in run.cells]


def test_of_large_runs_the_lowest_cells_come_first() -> None:
    """D5: bodies are read for cells without a score, then for the lowest ones, up to a limit."""
    cells = [
        {"cell": f"s/a/m/{number}", "score": f"{number / 1000:.4f}"} for number in range(1, MOST_WITH_BODIES + 200)
    ]
    chosen = choose_cells([*cells, {"cell": "s/a/m/9999", "score": None}])
    assert len(chosen) == LOWEST
    assert {"s/a/m/9999", "s/a/m/1"} <= chosen
    assert f"s/a/m/{LOWEST}" not in chosen
    assert len(choose_cells(cells[:MOST_WITH_BODIES])) == MOST_WITH_BODIES
