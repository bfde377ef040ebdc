"""`proctor plan`: what is assumed, what is measured, and that the answer is the size that holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from proctor.api.suite import EvalSuite
from proctor.cli.app import app
from proctor.core.ids import Arm
from proctor.core.reports.power import SizePlan, render_size_plan
from proctor.core.stats import GateRules
from proctor.core.stats.figures import summarise_arms
from proctor.errors import InvalidInput
from proctor.reconcile.rules import build_rules
from proctor.reconcile.sizing import ASSUMED_DEVIATION, RUNS, Stated, measure_spread, plan_size, state_drop
from support.manifests import suite
from support.observations import graded

ROOT = Path(__file__).resolve().parents[3]
SHOWN = str(ROOT / "examples" / "real-model.yaml")
REAL = [
    {"name": "opus", "anthropic": {"model": "claude-x", "secretKeyRef": {"name": "anthropic", "key": "api-key"}}},
]
JUDGE = {"anthropic": {"model": "claude-y", "secretKeyRef": {"name": "anthropic", "key": "api-key"}}}


def planned(made: EvalSuite, spread: float | None = None, drop: float = 0.1) -> SizePlan:
    return plan_size(made, Stated(drop, "here"), None if spread is None else Stated(spread, "here"))


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
    assert "assumed" in found.deviation_from
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
    assert (found["deviation_from"], found["max_drop_from"], found["runs"]) == ("--sd", "--drop", RUNS)
    assert found == plan(SHOWN, "--drop", "0.1", "--sd", "0.05")
    runner = CliRunner()
    assert runner.invoke(app, ["plan", SHOWN, "--sd", "0.1", "--from", "last"]).exit_code == 2
    assert runner.invoke(app, ["plan", SHOWN, "--drop", "0"]).exit_code == 2
    assert runner.invoke(app, ["plan", SHOWN, "--from", "nothing", "--data-dir", "/nonexistent"]).exit_code == 64


def test_the_command_reads_a_run(tmp_path: Path) -> None:
    """`proctor plan --from RUN`: the run's own cells."""
    directory = tmp_path / "runs" / "made-1"
    directory.mkdir(parents=True)
    made = suite(models=REAL)
    (directory / "suite.json").write_text(json.dumps(made.spec.to_file()))
    cells = [
        {"cell": f"error-root-cause/{server}/opus/{at}", "state": "graded", "score": score, "outcome": "completed"}
        for server in ("current", "candidate")
        for at, score in enumerate(("0.7", "0.8", "0.9"), start=1)
    ]
    run = {
        "apiVersion": "proctor.dev/v1alpha1", "kind": "EvalRun",
        "metadata": {"name": "made-1"}, "spec": {"suiteRef": {"name": "made"}},
    }  # fmt: skip
    (directory / "run.json").write_text(json.dumps({"run": run, "cells": cells}))
    found = plan(SHOWN, "--from", "last", "--drop", "0.2", "--data-dir", str(tmp_path))
    assert found["deviation"] == pytest.approx(0.1)
    assert found["deviation_from"].startswith("run made-1: ")
