"""`proctor report`: a run as one page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proctor.cli.exits import explained
from proctor.cli.options import DataDir


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report")(report)


def report(
    run: Annotated[str, typer.Argument(help="Name of the run, the beginning of it, or `last`.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write, instead of report.html beside run.json.")
    ] = None,
    data_dir: DataDir = None,
    clickhouse_url: Annotated[str | None, typer.Option(help="Where the run's results are, if not embedded.")] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write a run's report: one HTML file that loads nothing, with every cell's trajectory; prints its path."""
    with explained():
        import asyncio

        from proctor.local.page import write_page
        from proctor.local.rundir import find_run
        from proctor.settings import resolve_data_dir

        root = resolve_data_dir(data_dir)
        directory = find_run(root / "runs", run)
        file = None if output is None else output.expanduser().absolute()
        written = asyncio.run(write_page(directory, root, clickhouse_url=clickhouse_url, output=file))
        typer.echo(str(written))
        if show:
            typer.launch(written.as_uri())
