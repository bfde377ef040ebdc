"""`proctor scenario check` on a scenario's own rows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from proctor.cli.app import app
from proctor.core.fairness.variants import CHECKED_SEEDS
from proctor.settings import example_scenario_dir

pytestmark = [pytest.mark.engine]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all: the recipe never changes here, so its dataset is built once."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(example_scenario_dir(), tmp_path / "kept-waiting"))


def check(folder: Path, data_dir: Path, *options: str) -> tuple[int, dict[str, Any], list[str]]:
    """Return the exit code, what `--json` says, and its faults as ``file place: message; fix``."""
    found = CliRunner().invoke(app, ["scenario", "check", str(folder), "--data-dir", str(data_dir), "--json", *options])
    said = json.loads(found.stdout)
    faults = [f"{Path(one['file']).name} {one['place']}: {one['message']}; {one['fix']}" for one in said["faults"]]
    assert all(one["line"] >= 1 for one in said["faults"])
    return found.exit_code, said, faults


def change(folder: Path, file: str, old: str, new: str) -> None:
    path = folder / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))


def test_the_worked_example_is_fair_on_its_rows(folder: Path, data_dir: Path) -> None:
    """M-A3: solvable by its oracle, impostors in band, facts as the data say, by three dataset seeds."""
    code, said, faults = check(folder, data_dir)
    assert (code, faults) == (0, [])
    assert [trial["dataset"]["seed"] for trial in said["trials"]] == list(CHECKED_SEEDS)
    for trial in said["trials"]:
        assert {"oracle", "noop", "strongest-decoy", "names-everything", "wrong-evidence"} == set(trial["policies"])
        assert trial["policies"]["oracle"]["score"] >= 0.95
    assert len({trial["dataset"]["hash"] for trial in said["trials"]}) == len(CHECKED_SEEDS)


def test_fact_queries_at_fault_are_all_named(folder: Path, data_dir: Path) -> None:
    """Bad input: a fact query that returns nothing, several rows, two columns, another type, or can't be run."""
    queries = {
        "none": ("integer", "SELECT 1 FROM otel_traces WHERE SpanName = 'none'", "not 0 rows"),
        "several": ("text", "SELECT SpanName FROM otel_traces GROUP BY SpanName", "not 2 rows"),
        "columns": ("integer", "SELECT count(), 1 FROM otel_traces", "one row of one column"),
        "nothing": ("text", "SELECT anyIf(SpanName, SpanName = 'none') FROM otel_traces", "no value"),
        "words": ("integer", "SELECT any(SpanName) FROM otel_traces", "is no integer"),
        "missing": ("integer", "SELECT count() FROM otel_spans", "correct the query"),
    }
    added = "".join(f'  {name}: {{type: {kind}, sql: "{sql}"}}\n' for name, (kind, sql, _) in queries.items())
    change(folder, "answer.yaml", "  slow:\n", f"{added}  slow:\n")
    change(folder, "reference.yaml", "  slow:", "".join(f"  {name}: 1\n" for name in queries) + "  slow:")
    code, _, faults = check(folder, data_dir)
    assert code == 1
    assert len(faults) == len(queries)
    for name, (_, _, said) in queries.items():
        assert any(fault.startswith(f"answer.yaml facts.{name}.sql: ") and said in fault for fault in faults), name


def test_what_the_rows_deny_is_unfair(folder: Path, data_dir: Path) -> None:
    """Issue, part 7: a record that is not what the rows say, and scripted models outside their bands."""
    change(folder, "reference.yaml", "slow: 40", "slow: 41")
    change(folder, "answer.yaml", "{low: '0.3', high: '0.6'}", "{low: '0', high: '0.1'}")
    change(folder, "policies.yaml", "markers: [missed, longest]", "markers: [missed, longest, more]")
    change(folder, "policies.yaml", "none of these took", "<<more>> of these took")
    code, _, faults = check(folder, data_dir)
    assert code == 1
    assert [fault.split(":")[0] for fault in faults] == [
        "reference.yaml facts.slow",
        "policies.yaml oracle",
        "answer.yaml impostors.wrong-evidence",
    ]
    assert "but the rows say 40" in faults[0]
    assert "did not return more" in faults[1]


def test_another_volume_has_other_background_and_the_same_truth(folder: Path, data_dir: Path) -> None:
    """P39: planted rows are as many at every volume, and the oracle finds them among fewer."""
    code, said, faults = check(folder, data_dir, "--volume", "0.02", "--seed", "7")
    assert (code, faults) == (0, [])
    (trial,) = said["trials"]
    assert (trial["dataset"]["volume"], trial["dataset"]["seed"]) == ("0.02", 7)
