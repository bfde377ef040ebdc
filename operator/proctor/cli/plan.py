"""`proctor plan`: how many replicates a drop needs; and what `proctor run --dry-run` prints."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proctor.cli.exits import explained
from proctor.cli.options import DataDir, Scenarios

if TYPE_CHECKING:
    from proctor.api.suite import EvalSuite
    from proctor.local.rundir import RunDir
    from proctor.reconcile.sizing import StatedScores


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan")(plan)


def plan(
    suite: Annotated[Path, typer.Argument(help="The EvalSuite's file.", show_default=False)],
    drop: Annotated[
        float | None, typer.Option(min=0.001, max=0.5, help="Largest drop that may pass. Default: the suite's maxDrop.")
    ] = None,
    sd: Annotated[
        float | None, typer.Option("--sd", min=0, max=0.5, help="Standard deviation of a cell's score. Default: 0.1.")
    ] = None,
    from_run: Annotated[
        str | None, typer.Option("--from", help="A run whose cells show the spread: its name, or `last`.")
    ] = None,
    like: Annotated[
        str | None, typer.Option(help="A run whose cells' very scores are drawn from: its name, or `last`.")
    ] = None,
    scores: Annotated[str | None, typer.Option(help="Scores that are not normal: `lapses` or `marks`.")] = None,
    scenarios: Scenarios = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say how many replicates a suite needs to tell a drop, by simulation; nothing is run."""
    with explained():
        from proctor.api.loading import load_suite
        from proctor.core.reports.power import render_size_plan
        from proctor.reconcile.sizing import plan_size, state_drop
        from proctor.settings import shipped_scenarios_dir

        if sum(given is not None for given in (sd, from_run, like, scores)) > 1:
            raise typer.BadParameter("only one of them", param_hint="--sd, --from, --like, --scores")
        folders = [*([scenarios] if scenarios is not None else []), shipped_scenarios_dir()]
        loaded = load_suite(suite, scenario_dirs=folders)
        stated = _state_scores(sd, scores) if from_run is None and like is None else None
        if from_run is not None:
            stated = _read_spread(from_run, data_dir)
        elif like is not None:
            stated = _read_scores(like, data_dir)
        found = plan_size(loaded, state_drop(loaded, drop), stated)
        typer.echo(_to_json(found) if as_json else render_size_plan(found))


def _state_scores(sd: float | None, shape: str | None) -> StatedScores | None:
    from proctor.reconcile.sizing import SHAPES, Stated, StatedScores

    if shape is not None and shape not in SHAPES:
        raise typer.BadParameter(f"{shape!r} is none of {', '.join(SHAPES)}", param_hint="--scores")
    if shape is not None:
        return StatedScores.of_shape(shape)
    return None if sd is None else StatedScores.normal(Stated(sd, "--sd"))


def _read_spread(name: str, data_dir: Path | None) -> StatedScores:
    from proctor.reconcile.result import report_result
    from proctor.reconcile.sizing import StatedScores, measure_spread

    directory = _find_run(name, data_dir)
    run, cells = directory.read_whole()
    report = report_result(run, directory.read_suite(), cells)
    return StatedScores.normal(measure_spread(directory.name, report.arms))


def _read_scores(name: str, data_dir: Path | None) -> StatedScores:
    from proctor.core.reports.run_cells import read_observation
    from proctor.reconcile.sizing import copy_scores

    directory = _find_run(name, data_dir)
    return copy_scores(directory.name, [read_observation(cell) for cell in directory.read_cells()])


def _find_run(name: str, data_dir: Path | None) -> RunDir:
    from proctor.local.rundir import find_run
    from proctor.settings import resolve_data_dir

    return find_run(resolve_data_dir(data_dir) / "runs", name)


def describe_plan(suite: EvalSuite, *, as_json: bool) -> str:
    """Return the cells of a suite and what they may cost, as a table or as JSON."""
    from proctor.core.reports.plan import render_plan
    from proctor.reconcile.planning import describe_plan as plan_suite

    found = plan_suite(suite)
    return _to_json(found) if as_json else render_plan(found)


def _to_json(report: Any) -> str:  # noqa: ANN401 - any report that is a dataclass
    # Decimals become text: money is never a float.
    return json.dumps(asdict(report), default=lambda value: format(value, "f"), ensure_ascii=False)
