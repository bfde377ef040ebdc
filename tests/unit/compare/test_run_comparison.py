"""`proctor compare`: what differs between two runs, inputs first, and how sure the differences are."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from proctor.cli.app import app
from proctor.core.ids import Arm, CellKey
from proctor.core.reports.run_comparison_text import MOST_ROWS
from proctor.core.reports.run_inputs import RunInputs, Weight, find_changes
from proctor.core.stats.observations import CellFate, Observation
from proctor.core.stats.run_pairs import compare_runs
from proctor.core.trajectory.outcome import Outcome
from support.finished_runs import Played, make_finished_run, suite_of
from support.runs import make_suite

A, B = "before-261130-120000-0001", "after-261130-130000-0002"


def play_worse(cell: CellKey, chance: random.Random) -> Played:
    """The right server's agents find less, and one gives up."""
    if cell.server == "right" and cell.replicate == 1:
        return Played(score=Decimal(0), outcome=Outcome.GAVE_UP)
    return Played(score=Decimal("0.5") if cell.server == "right" else Decimal(chance.choice(["0.75", "1"])))


def play_well(_cell: CellKey, chance: random.Random) -> Played:
    return Played(score=Decimal(chance.choice(["0.75", "1"])), usd=Decimal("0.01"))


def call(data_dir: Path, *words: str) -> str:
    result = CliRunner().invoke(app, ["compare", A, B, "--data-dir", str(data_dir), *words])
    assert result.exit_code == 0, result.output
    return result.output


def compare(data_dir: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call(data_dir, "--json"))
    return found


def test_what_changed_is_told(tmp_path: Path) -> None:
    """M-A10: scores per arm with the paired difference, marks that flipped, outcomes and cells that changed."""
    make_finished_run(tmp_path, name=A, suite=suite_of(48), play=play_well)
    make_finished_run(tmp_path, name=B, suite=suite_of(48), play=play_worse)
    found = compare(tmp_path)
    assert (found["comparable"], found["inputs"], found["pairs"]) == (True, [], 48)
    arms = {(arm["server"], arm["model"]): arm for arm in found["arms"]}
    worse = arms["right", "loudest"]
    assert worse["pairs"] == 12
    assert worse["difference"]["high"] < 0
    assert worse["before"]["outcomes"] == {"completed": 12}
    assert worse["after"]["outcomes"] == {"completed": 11, "gave_up": 1}
    assert (worse["before"]["usd"], worse["after"]["usd"]) == ("0.01", None)
    same = arms["left", "newest"]
    assert same["difference"]["low"] <= 0 <= same["difference"]["high"]
    assert all(mark["lost"] > mark["gained"] for mark in found["marks"] if mark["server"] == "right")
    assert {mark["pairs"] for mark in found["marks"]} == {12}
    cell = next(one for one in found["cells"] if one["cell"] == "scenario-1/right/newest/1")
    assert cell["ended"] == ["completed", "gave_up"]
    assert cell["scores"][1] == 0
    assert cell["lost"]
    assert not cell["gained"]
    changes = [(one["scores"][1] or 0) - (one["scores"][0] or 0) for one in found["cells"]]
    assert changes == sorted(changes)
    shown = call(tmp_path)
    for words in (
        "inputs: the same suite",
        "gave_up",
        "cells are paired by",
        f"and {len(found['cells']) - MOST_ROWS} more",
    ):
        assert words in shown
    assert "tools are not compared" in shown  # its results are nowhere: the rest is compared all the same


def test_same_runs_differ_in_nothing(tmp_path: Path) -> None:
    """A run beside its like: intervals hold 0, and no table of changes is shown."""
    make_finished_run(tmp_path, name=A, suite=suite_of(12))
    make_finished_run(tmp_path, name=B, suite=suite_of(12))
    found = compare(tmp_path)
    assert (found["marks"], found["cells"]) == ([], [])
    assert all(arm["difference"]["low"] <= 0 <= arm["difference"]["high"] for arm in found["arms"])


def test_runs_without_a_pair_are_told_what_to_do(tmp_path: Path) -> None:
    """Runs of other models have nothing in common; the next step is said."""
    make_finished_run(tmp_path, name=A, suite=suite_of(12, models=("loudest",)))
    make_finished_run(tmp_path, name=B, suite=suite_of(12, models=("renamed",)))
    assert compare(tmp_path)["pairs"] == 0
    assert "give scenarios, servers and models the same names" in call(tmp_path)


def test_other_cells_have_no_partner(tmp_path: Path) -> None:
    """Only cells that both have are pairs; the others are counted and named."""
    make_finished_run(tmp_path, name=A, suite=suite_of(16))
    make_finished_run(tmp_path, name=B, suite=suite_of(12, models=("newest", "renamed")))
    found = compare(tmp_path)
    assert found["pairs"] == 6
    assert {name.split("/")[2] for name in found["onlyAfter"]} == {"renamed"}
    assert {tuple(arm["model"] for arm in found["arms"])} == {("newest", "newest")}
    shown = call(tmp_path)
    assert "without a partner: 10 in A, 6 in B" in shown
    assert "only in B: cells of left × renamed, right × renamed" in shown


@pytest.mark.parametrize(
    ("changes", "what"),
    [({"datasets": "ee" * 32}, "dataset of scenario-1"), ({"rubric": "0a" * 32}, "rubric")],
    ids=str,
)
def test_other_measure_is_not_comparable(tmp_path: Path, changes: dict[str, str], what: str) -> None:
    """P30: scores of another incident, or by another rubric, are shown with a warning before them."""
    make_finished_run(tmp_path, name=A, suite=suite_of(12))
    make_finished_run(tmp_path, name=B, suite=suite_of(12), **changes)  # type: ignore[arg-type]
    found = compare(tmp_path)
    assert not found["comparable"]
    assert [change["what"] for change in found["inputs"]] == [what]
    shown = call(tmp_path)
    assert shown.index("NOT COMPARABLE") < shown.index("pairs;")
    assert f"! {what}" in shown


def test_prompt_under_test_is_named(tmp_path: Path) -> None:
    """manifest: instructions are compared over two suites' runs; the change stands first, and arms pair up."""
    make_finished_run(tmp_path, name=A, suite=suite_of(12))
    make_finished_run(
        tmp_path, name=B, suite=suite_of(12, agent={"instructions": "Think of the newest release first."})
    )
    found = compare(tmp_path)
    assert found["comparable"]
    assert [(c["what"], c["after"], c["weight"]) for c in found["inputs"]] == [
        ("agent.instructions", "Think of the newest release first.", "changed")
    ]
    assert found["pairs"] == 12


def test_inputs_are_weighed() -> None:
    """What breaks a comparison is told first, what may be tested next, what touches no score last."""
    suite = make_suite().to_file()
    other = json.loads(json.dumps(suite))
    other["servers"][1]["stdio"]["command"] = ["right", "--new"]
    other["gate"]["maxDrop"] = "0.1"
    other["weights"]["judge"], other["weights"]["programmatic"] = "0.5", "0.5"
    before = RunInputs(suite=suite, datasets={"one": "a" * 64}, rubric="b" * 64, judge="", tools={"right": "c" * 64})
    after = replace(before, suite=other, judge="d" * 64, tools={"right": "e" * 64})
    found = find_changes(before, after)
    assert [(change.what, change.weight) for change in found] == [
        ("judge", Weight.BREAKS),
        ("weights.programmatic", Weight.BREAKS),
        ("weights.judge", Weight.BREAKS),
        ("tool list of right", Weight.CHANGED),
        ("servers.right.stdio.command", Weight.CHANGED),
        ("gate.maxDrop", Weight.HARMLESS),
    ]
    assert (found[4].before, found[4].after) == ('["right"]', '["right", "--new"]')


def test_rubrics_of_other_scenarios_say_nothing() -> None:
    """One digest is of all scenarios' rubrics: with other scenarios it can't be compared, and is not."""
    before = RunInputs(suite={}, datasets={"one": "a"}, rubric="b", judge="", tools={})
    after = replace(before, datasets={"one": "a", "two": "c"}, rubric="d")
    assert find_changes(before, after) == ()


def observe(server: str, replicate: int, score: float | None, scenario: str = "one") -> Observation:
    return Observation(
        cell=CellKey(scenario, server, "newest", replicate),
        fate=CellFate.UNGRADED if score is None else CellFate.GRADED,
        score=score,
        outcome=Outcome.COMPLETED,
        tool_calls=1,
        tokens=1,
        usd=None,
        seconds=1.0,
    )


def test_lost_scores_make_no_pair() -> None:
    """A cell without a grade is in no difference; a scenario without any pair leaves the interval open."""
    before = [observe("left", n, 0.5) for n in range(1, 6)] + [observe("left", n, 0.5, "two") for n in (1, 2)]
    after = [observe("left", n, None if n == 1 else 0.75) for n in range(1, 6)]
    after += [observe("left", n, None, "two") for n in (1, 2)]
    (change,) = compare_runs(before, after, seed=1)
    assert (change.arm, change.pairs) == (Arm("left", "newest"), 4)
    assert change.delta is not None
    assert change.delta.mean == pytest.approx(0.25)
    assert (change.delta.low, change.delta.high) == (-1, 1)
    (nothing,) = compare_runs(before[:2], [observe("left", n, None) for n in (1, 2)], seed=1)
    assert (nothing.pairs, nothing.delta, nothing.p, nothing.after) == (0, None, None, None)


def test_scripted_arms_are_exact() -> None:
    """Where no model has any chance in it, an equal score in every cell is the score, and its change exact."""
    before = [observe("left", n, 0.5) for n in range(1, 4)]
    after = [observe("left", n, 0.75) for n in range(1, 4)]
    (change,) = compare_runs(before, after, seed=1, scripted=frozenset({"newest"}))
    assert change.delta is not None
    assert change.delta.deterministic
    assert (change.delta.low, change.delta.high) == (0.25, 0.25)


def test_hostile_text_is_inert(tmp_path: Path) -> None:
    """Whatever marks, reasons and manifests hold, a terminal only shows it."""
    first = make_finished_run(tmp_path, name=A, suite=suite_of(12))
    make_finished_run(tmp_path, name=B, suite=suite_of(12, agent={"instructions": "\x1b[31m\u202eevil\x00\x07"}))
    whole = json.loads(first.directory.run_file.read_text())
    for cell in whole["cells"]:
        for check in (cell.get("programmatic") or {}).get("checks", []):
            check["id"] = "\x1b]0;title\x07" if check["id"].startswith("names") else check["id"]
    first.directory.run_file.write_text(json.dumps(whole))
    assert not {sign for sign in call(tmp_path) if not sign.isprintable() and sign != "\n"}
