"""`proctor plan`: what is assumed, what is measured, and that the answer is the size that holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from proctor.api.suite import EvalSuite
from proctor.cli.app import app
from proctor.core.ids import Arm
from proctor.core.reports.power import SizePlan, render_size_plan
from proctor.core.stats import GateRules
from proctor.core.stats.chances import SeenScores
from proctor.core.stats.figures import summarise_arms
from proctor.errors import InvalidInput
from proctor.reconcile.rules import build_rules
from proctor.reconcile.sizing import (
    ASSUMED_DEVIATION,
    RUNS,
    Stated,
    StatedScores,
    measure_spread,
    plan_size,
    state_drop,
)
from support.manifests import suite
from support.observations import graded

ROOT = Path(__file__).resolve().parents[3]
SHOWN = str(ROOT / "examples" / "real-model.yaml")
REAL = [
    {"name": "opus", "anthropic": {"model": "claude-x", "secretKeyRef": {"name": "anthropic", "key": "api-key"}}},
]
JUDGE = {"anthropic": {"model": "claude-y", "secretKeyRef": {"name": "anthropic", "key": "api-key"}}}


def planned(made: EvalSuite, spread: float | None = None, drop: float = 0.1) -> SizePlan:
    scores = None if spread is None else StatedScores.normal(Stated(spread, "here"))
    return plan_size(made, Stated(drop, "here"), scores)


def plan(*arguments: str) -> dict[str, Any]:
    outcome = CliRunner().invoke(app, ["plan", *arguments, "--json"])
    assert outcome.exit_code == 0, outcome.output
    found: dict[str, Any] = json.loads(outcome.stdout)
    return found


def test_exact_is_for_scripted_models_without_a_judge() -> None:
    """Statistics: the label is earned by what is asked, not by scores that happen to be alike."""
    assert build_rules(suite().spec, seed=1).scripted == {"newest"}
    assert build_rules(suite(models=REAL).spec, seed=1).scripted == frozenset()
    assert build_rules(suite(judge=JUDGE).spec, seed=1).scripted == frozenset()


def test_more_spread_and_smaller_drops_need_more_replicates() -> None:
    """P31, `proctor plan`: the answer follows spread and drop, and its own figures show that it is enough."""
    real = suite(models=REAL)
    needed = [
        planned(real, spread, drop).replicates or 10_000 for spread, drop in ((0.05, 0.1), (0.2, 0.1), (0.2, 0.05))
    ]
    assert needed == sorted(needed)
    assert needed[0] < needed[1] < needed[2]
    found = planned(real, 0.1)
    (chosen,) = [size for size in found.sizes if size.replicates == found.replicates]
    assert chosen.equal_passes >= 0.8
    assert chosen.double_fails >= 0.8
    assert chosen.limit_passes <= 0.05
    assert real.spec.replicates in {size.replicates for size in found.sizes}
    assert f"{found.replicates} replicates are enough" in render_size_plan(found)


def test_scripted_models_need_the_fewest() -> None:
    """P31, `proctor plan`: exact scores need no simulation, and cost nothing."""
    found = planned(suite())
    assert (found.replicates, found.runs, found.deviation) == (3, 0, 0.0)
    assert "all models are scripted" in render_size_plan(found)


def test_steady_scores_of_a_real_model_still_need_their_cells() -> None:
    """Statistics: no spread was seen, but a rare failure has to have had its chance to show."""
    found = planned(suite(models=REAL), 0.0)
    assert found.replicates is not None
    assert found.replicates >= 25


def test_no_size_is_enough() -> None:
    """P31, `proctor plan`: the answer is then what else would help."""
    found = planned(suite(models=REAL), 0.4, 0.01)
    assert found.replicates is None
    assert "add scenarios" in render_size_plan(found)


def test_what_is_assumed_is_stated() -> None:
    """Issue: an assumption is stated, with how to replace it."""
    found = planned(suite(models=REAL))
    assert found.deviation == ASSUMED_DEVIATION
    assert "assumed" in found.scores
    assert "assumed" in render_size_plan(found)
    made = suite()
    assert state_drop(made, 0.2) == Stated(0.2, "--drop")
    assert made.spec.gate.max_drop is not None
    assert state_drop(made, None).value == float(made.spec.gate.max_drop)


def test_an_earlier_run_shows_the_spread_of_its_least_steady_arm() -> None:
    """Issue: the spread from an earlier run's cells; a run that shows none says so."""
    cells = graded("s", "base", [0.7, 0.8, 0.9]) + graded("s", "cand", [0.2, 0.8, 0.5])
    arms, _ = summarise_arms(cells, GateRules())
    spread = measure_spread("made-1", arms)
    assert spread.value == pytest.approx(0.3)
    assert str(Arm("cand", "m")) in spread.source
    with pytest.raises(InvalidInput, match="--sd"):
        measure_spread("made-2", summarise_arms(graded("s", "base", [0.7]), GateRules())[0])


def test_the_command() -> None:
    """`proctor plan`: JSON for machines, the same figures every time, mistakes are usage errors."""
    found = plan(SHOWN, "--drop", "0.1", "--sd", "0.05")
    assert found["suite"] == "real-model"
    told = (found["scores"], found["max_drop_from"], found["runs"])
    assert told == ("normal around 0.7; --sd", "--drop", RUNS)
    assert found == plan(SHOWN, "--drop", "0.1", "--sd", "0.05")
    runner = CliRunner()
    assert runner.invoke(app, ["plan", SHOWN, "--sd", "0.1", "--from", "last"]).exit_code == 2
    assert runner.invoke(app, ["plan", SHOWN, "--scores", "lapses", "--like", "last"]).exit_code == 2
    assert runner.invoke(app, ["plan", SHOWN, "--scores", "odd"]).exit_code == 2
    assert runner.invoke(app, ["plan", SHOWN, "--drop", "0"]).exit_code == 2
    assert runner.invoke(app, ["plan", SHOWN, "--from", "nothing", "--data-dir", "/nonexistent"]).exit_code == 64


def write_run(data_dir: Path, scores: Sequence[str]) -> None:
    """A finished run of one scenario, with the same scores on both sides."""
    directory = data_dir / "runs" / "made-1"
    directory.mkdir(parents=True)
    made = suite(models=REAL)
    (directory / "suite.json").write_text(json.dumps(made.spec.to_file()))
    cells = [
        {"cell": f"error-root-cause/{server}/opus/{at}", "state": "graded", "score": score, "outcome": "completed"}
        for server in ("current", "candidate")
        for at, score in enumerate(scores, start=1)
    ]
    run = {
        "apiVersion": "proctor.dev/v1alpha1", "kind": "EvalRun",
        "metadata": {"name": "made-1"}, "spec": {"suiteRef": {"name": "made"}},
    }  # fmt: skip
    (directory / "run.json").write_text(json.dumps({"run": run, "cells": cells}))


def test_the_command_reads_a_run(tmp_path: Path) -> None:
    """`proctor plan --from RUN`: the spread of the run's own cells; `--like RUN`: their very scores."""
    write_run(tmp_path, ("0.7", "0.8", "0.9"))
    found = plan(SHOWN, "--from", "last", "--drop", "0.2", "--data-dir", str(tmp_path))
    assert found["deviation"] == pytest.approx(0.1)
    assert found["scores"].startswith("normal around 0.7; run made-1: ")
    few = CliRunner().invoke(app, ["plan", SHOWN, "--like", "last", "--data-dir", str(tmp_path)])
    assert few.exit_code == 64
    assert "10 scores" in few.output


def test_the_command_draws_from_a_runs_own_scores(tmp_path: Path) -> None:
    """`proctor plan --like RUN`: scores of a few values are simulated as they were seen, and the output says so."""
    write_run(tmp_path, ("1", "1", "1", "0.83", "1", "1", "0.5", "1", "1", "1"))
    found = plan(SHOWN, "--like", "made", "--drop", "0.2", "--data-dir", str(tmp_path))
    assert "as run made-1 showed them" in found["scores"]
    assert found["replicates"] is not None
    assert not any("normal" in note for note in found["notes"])


def test_scores_that_lapse_need_more_than_normal_ones_of_a_usual_spread() -> None:
    """`proctor plan --scores`: the shape matters, is simulated, and is named."""
    usual, lapsing = plan(SHOWN, "--drop", "0.2"), plan(SHOWN, "--drop", "0.2", "--scores", "lapses")
    assert lapsing["replicates"] > usual["replicates"]
    assert lapsing["scores"].startswith("lapses: ")
    assert plan(SHOWN, "--drop", "0.2", "--scores", "marks")["scores"].startswith("marks: ")


def test_adaptive_replicates_are_planned_by_what_they_take() -> None:
    """`proctor plan`, adaptive: the least maxReplicates that is enough, what a run takes on average, least and most."""
    real = suite(models=REAL, adaptive={"maxReplicates": 12})
    found = planned(real, 0.1, 0.1)
    assert found.first == real.spec.replicates
    (chosen,) = [size for size in found.sizes if size.replicates == found.replicates]
    assert chosen.equal_passes >= 0.8
    assert chosen.limit_passes <= 0.05
    assert found.first < chosen.equal_takes < chosen.replicates
    assert chosen.double_takes < chosen.replicates
    assert (chosen.least_cells, chosen.cells) == (4 + 2 * 3, 4 + 2 * chosen.replicates)
    told = render_size_plan(found)
    assert f"adaptive.maxReplicates {found.replicates} is enough: an equal candidate passes in " in told
    assert f"3 to {chosen.replicates}" in told
    assert "equal takes" in told


@given(
    strata=st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=12), min_size=1, max_size=3),
    drop=st.floats(0.01, 0.3),
)
@settings(deadline=None, max_examples=40)
def test_seen_scores_drop_by_what_they_are_told(strata: list[list[float]], drop: float) -> None:
    """`proctor plan --like`: scores stay possible, equal is as seen, and a drop is no more than was asked for."""
    seen = SeenScores.of(strata)
    random = np.random.default_rng(1)
    equal, dropped = (seen.draw(random, (40, 1000), each) for each in (0.0, drop))
    assert dropped.min() >= 0
    assert dropped.max() <= 1
    assert float(equal.mean()) == pytest.approx(sum(seen.scores) / len(seen.scores), abs=0.02)
    lost = float(equal.mean() - dropped.mean())
    assert lost <= drop + 0.03
    if min(seen.scores) >= drop:
        assert lost == pytest.approx(drop, abs=0.03)
