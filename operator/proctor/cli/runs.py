"""`proctor runs` and `proctor cancel`: which runs there are, and how to end one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.exits import explained
from proctor.cli.options import DataDir

if TYPE_CHECKING:
    from proctor.core.reports.run_list import RunLine
    from proctor.local.rundir import RunDir


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("runs")(list_all)
    app.command("cancel")(cancel)


def list_all(
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many, newest first.")] = 20,
) -> None:
    """List the runs of this machine, newest first."""
    with explained():
        from itertools import islice

        from proctor.core.reports.run_list import render_runs
        from proctor.local.rundir import list_runs
        from proctor.settings import resolve_data_dir

        root = resolve_data_dir(data_dir)
        found = list_runs(root / "runs")
        lines = [_describe(directory, root) for directory in islice(found, limit)]
        if as_json:
            typer.echo(json.dumps([line.to_json() for line in lines], ensure_ascii=False))
            return
        if not lines:
            typer.echo(f"no runs in {root / 'runs'}; `proctor run SUITE` makes one")
            return
        typer.echo(render_runs(lines))
        more = sum(1 for _ in found)
        if more:
            typer.echo(f"and {more} older: --limit {limit + more}")


def _describe(directory: RunDir, data_dir: Path) -> RunLine:
    from proctor.clock import utc_now
    from proctor.core.reports.run_list import RunLine, describe_run
    from proctor.errors import Terminal

    try:
        head = directory.read_head()
        line = describe_run(directory.name, head, now=utc_now(), goes_on=False)
        if line.verdict == "Pending":
            # Looked up for open runs only: most lists have none, and it loads more than the rest.
            from proctor.local.locks import read_holder

            goes_on = read_holder(data_dir) == directory.name
            line = describe_run(directory.name, head, now=utc_now(), goes_on=goes_on)
    except (Terminal, ValueError, TypeError) as error:
        return RunLine(name=directory.name, reason="can't be read", summary=str(error))
    return line


def cancel(
    run: Annotated[str, typer.Argument(help="Name of the run, the beginning of it, or `last`.")],
    data_dir: DataDir = None,
) -> None:
    """End a run: its verdict is Cancelled, its grades and trajectories are kept."""
    with explained():
        from proctor.local.cancelling import cancel_run
        from proctor.settings import resolve_data_dir

        typer.echo(cancel_run(resolve_data_dir(data_dir), run))
