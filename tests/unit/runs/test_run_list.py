"""`proctor runs`: one line per run, from the head of run.json alone."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from proctor.cli.app import app
from proctor.cli.commands import COMMANDS, build_app
from proctor.core.reports.run_list import describe_run
from proctor.core.seeding.identity import GENERATOR_VERSION, recipe_digest
from proctor.core.seeding.record import DatasetRecord
from proctor.errors import Terminal
from proctor.local.dataset_files import SeedRequest
from proctor.local.rundir import RunDir, list_runs
from proctor.settings import shipped_scenarios_dir
from support.finished_runs import make_finished_run, suite_of

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def call(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.output


def write_run(data_dir: Path, name: str, text: str) -> RunDir:
    directory = RunDir(data_dir / "runs" / name)
    directory.path.mkdir(parents=True)
    directory.suite_file.write_text("{}")
    directory.run_file.write_text(text)
    return directory


def test_one_line_per_run(tmp_path: Path) -> None:
    """M-D1 on one machine: name, suite, verdict, why, age, cells and scores, newest first."""
    make_finished_run(tmp_path, name="first-261130-120000-0001", suite=suite_of(12))
    make_finished_run(tmp_path, name="second-261130-130000-0002", suite=suite_of(12))
    _, _, newest, oldest = call("runs", "--data-dir", str(tmp_path)).splitlines()
    assert newest.split()[:2] == ["second-261130-130000-0002", "second"]
    assert oldest.split()[:2] == ["first-261130-120000-0001", "first"]
    assert "16/16" in newest
    (line, _) = json.loads(call("runs", "--data-dir", str(tmp_path), "--json"))
    assert line.keys() == {"name", "suite", "verdict", "reason", "started", "age", "cells", "score", "summary"}
    assert line["verdict"] in {"Pass", "Fail", "Inconclusive"}
    assert len(line["score"]) == 2


def test_older_ones_are_counted(tmp_path: Path) -> None:
    """A list that is cut says so, and how to see the rest."""
    for number in range(3):
        make_finished_run(tmp_path, name=f"made-261130-12000{number}-0001", suite=suite_of(12))
    assert "and 2 older: --limit 3" in call("runs", "--data-dir", str(tmp_path), "--limit", "1")
    assert "no runs in" in call("runs", "--data-dir", str(tmp_path / "other"))


def test_pending_run_tells_whether_it_goes_on(tmp_path: Path) -> None:
    """A run that nobody is at work on is stopped: the same command resumes it."""
    write_run(tmp_path, "made-1", json.dumps({"run": {"status": {"verdict": "Pending"}}, "cells": []}))
    assert "stopped" in call("runs", "--data-dir", str(tmp_path))
    line = describe_run("made-1", {"status": {}}, now=NOW, goes_on=True)
    assert (line.verdict, line.reason, line.age, line.score) == ("Pending", "goes on", None, None)


@pytest.mark.parametrize(
    "text", ["", "{", '{"run": ', '{"run": 7, "cells": []}', '{"cells": []}', '{"run": {"status": {"started": 3}}}']
)
def test_damaged_runs_are_listed_as_such(tmp_path: Path, text: str) -> None:
    """A run that can't be read hides no other."""
    write_run(tmp_path, "made-2", text)
    make_finished_run(tmp_path, name="made-261130-120000-0001", suite=suite_of(12))
    shown = call("runs", "--data-dir", str(tmp_path))
    assert "can't be read" in shown
    assert "made-261130-120000-0001" in shown


def test_hostile_text_is_inert(tmp_path: Path) -> None:
    """Nothing that a run.json holds acts on the terminal."""
    run: dict[str, Any] = {"status": {"verdict": "\x1b[2JPass", "reason": "\u202egnorw", "summary": "\x07"}}
    write_run(tmp_path, "made-1", json.dumps({"run": run, "cells": []}))
    shown = call("runs", "--data-dir", str(tmp_path))
    assert shown.isprintable() or set(shown) - set("\n") <= {sign for sign in shown if sign.isprintable()}


def test_head_is_read_without_the_cells(tmp_path: Path) -> None:
    """2,000 cells behind it cost nothing: what follows the run is not even looked at."""
    status = {"verdict": "Pass", "summary": "ü" * 100_000}
    directory = write_run(
        tmp_path, "made-1", json.dumps({"run": {"status": status}}, ensure_ascii=False)[:-1] + ", garbage"
    )
    assert directory.read_head() == {"status": status}
    with pytest.raises(Terminal, match="not JSON"):
        directory.read_cells()
    assert [one.name for one in list_runs(tmp_path / "runs")] == ["made-1"]


def test_every_command_has_its_line() -> None:
    """A command that is built alone is the one of the whole command line."""
    import typer.main

    whole = typer.main.get_command(build_app())
    assert set(whole.commands) == set(COMMANDS)  # type: ignore[attr-defined]
    for name in COMMANDS:
        alone = typer.main.get_command(build_app(name)).commands[name]  # type: ignore[attr-defined]
        assert [p.name for p in alone.params] == [p.name for p in whole.commands[name].params]  # type: ignore[attr-defined]


def write_dataset(data_dir: Path) -> str:
    """A committed dataset as finding it sees one: its record."""
    scenario = shipped_scenarios_dir() / "error-root-cause"
    request = SeedRequest(scenario=scenario, seed=42, anchor=NOW, volume=Decimal("0.01"))
    record = DatasetRecord(
        hash=request.hash,
        database=f"ds_{request.hash}_1",
        generator=GENERATOR_VERSION,
        recipe=recipe_digest(scenario),
        seed=42,
        anchor=NOW,
        volume=request.volume,
        tables={},
        sheets={request.answer_source() or "": "0" * 64},
        seconds=1,
    )
    folder = data_dir / "datasets" / request.hash
    folder.mkdir(parents=True)
    (folder / "record.json").write_text(record.model_dump_json())
    return request.hash


@pytest.mark.parametrize("words", [["runs"], ["dataset", "seed", "error-root-cause", "--volume", "0.01"]], ids=len)
def test_start_loads_no_more_than_it_needs(tmp_path: Path, words: list[str]) -> None:
    """M-A11: what is there is found in a moment; parsers, drivers and statistics stay where they are."""
    digest = write_dataset(tmp_path)
    make_finished_run(tmp_path, name=f"{digest}-1", suite=suite_of(12))
    script = (
        "import sys; from proctor.cli.commands import build_app\n"
        f"try: build_app({words[0]!r})({[*words, '--data-dir', str(tmp_path)]!r})\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'clickhouse_connect', 'aiohttp', 'httpx', 'ruamel', 'ruamel.yaml', 'proctor.api.run',"
        " 'asyncio', 'proctor.local.session'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert digest in shown
    assert shown.splitlines()[-1] == "[]"
