"""`proctor plan`: how many replicates a drop needs; and what `proctor run --dry-run` prints."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proctor.cli.exits import explained

if TYPE_CHECKING:
    from proctor.api.suite import EvalSuite
    from proctor.reconcile.sizing import Stated


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
    scenarios: Annotated[Path | None, typer.Option(help="Folder with scenario folders of your own.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder for engines, datasets and runs.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say how many replicates a suite needs to tell a drop, by simulation; nothing is run."""
    with explained():
        from proctor.api.loading import load_suite
        from proctor.core.reports.power import render_size_plan
        from proctor.reconcile.sizing import Stated, plan_size, state_drop
        from proctor.settings import shipped_scenarios_dir

        if sd is not None and from_run is not None:
            raise typer.BadParameter("it is one or the other", param_hint="--sd, --from")
        folders = [*([scenarios] if scenarios is not None else []), shipped_scenarios_dir()]
        loaded = load_suite(suite, scenario_dirs=folders)
        spread = Stated(sd, "--sd") if sd is not None else None
        if from_run is not None:
            spread = _read_spread(from_run, data_dir)
        found = plan_size(loaded, state_drop(loaded, drop), spread)
        typer.echo(_to_json(found) if as_json else render_size_plan(found))


def _read_spread(name: str, data_dir: Path | None) -> Stated:
    from proctor.local.rundir import find_run
    from proctor.reconcile.result import report_result
    from proctor.reconcile.sizing import measure_spread
    from proctor.settings import default_data_dir

    directory = find_run((data_dir or default_data_dir()).expanduser().absolute() / "runs", name)
    report = report_result(directory.read_run(), directory.read_suite(), directory.read_cells())
    return measure_spread(directory.name, report.arms)


def describe_plan(suite: EvalSuite, *, as_json: bool) -> str:
    """Return the cells of a suite and what they may cost, as a table or as JSON."""
    from proctor.core.reports.plan import render_plan
    from proctor.reconcile.planning import describe_plan as plan_suite

    found = plan_suite(suite)
    return _to_json(found) if as_json else render_plan(found)


def _to_json(report: Any) -> str:  # noqa: ANN401 - any report that is a dataclass
    # Decimals become text: money is never a float.
    return json.dumps(asdict(report), default=lambda value: format(value, "f"), ensure_ascii=False)
