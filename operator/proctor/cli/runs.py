"""`proctor runs` and `proctor cancel`: which runs there are, and how to end one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from proctor.cli.exits import explained

_DATA_DIR = Annotated[Path | None, typer.Option("--data-dir", help="Folder for engines, datasets and runs.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("runs")(list_all)
    app.command("cancel")(cancel)


def list_all(
    data_dir: _DATA_DIR = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many, newest first.")] = 20,
) -> None:
    """List the runs of this machine, newest first."""
    with explained():
        from itertools import islice

        from proctor.local.rundir import list_runs
        from proctor.settings import default_data_dir

        runs_dir = (data_dir or default_data_dir()) / "runs"
        rows = [_describe(directory) for directory in islice(list_runs(runs_dir), limit)]
        if as_json:
            typer.echo(json.dumps(rows, ensure_ascii=False))
            return
        if not rows:
            typer.echo(f"no runs in {runs_dir}")
        width = max((len(row["name"]) for row in rows), default=0)
        for row in rows:
            typer.echo(f"{row['name']:<{width}}  {row['verdict']:<12}  {row['cells']:>9}  {row['summary']}")


def _describe(directory: Any) -> dict[str, Any]:  # noqa: ANN401 - a RunDir; importing it here would load pydantic
    from proctor.errors import Terminal

    try:
        run = directory.read_run()
    except Terminal as error:
        return {"name": directory.name, "verdict": "?", "cells": "", "summary": str(error)}
    status = run.status
    cells = status.cells
    done = cells.total - cells.running - cells.pending
    return {
        "name": directory.name,
        "verdict": status.verdict.value,
        "cells": f"{done}/{cells.total}",
        "summary": status.summary,
    }


def cancel(
    run: Annotated[str, typer.Argument(help="Name of the run, the beginning of it, or `last`.")],
    data_dir: _DATA_DIR = None,
) -> None:
    """End a run: its verdict is Cancelled, its grades and trajectories are kept."""
    with explained():
        from proctor.local.cancelling import cancel_run
        from proctor.settings import default_data_dir

        typer.echo(cancel_run((data_dir or default_data_dir()).absolute(), run))
