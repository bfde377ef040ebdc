"""`proctor compare`: two runs beside each other."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from proctor.cli.exits import explained
from proctor.cli.options import DataDir


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare)


def compare(
    before: Annotated[str, typer.Argument(metavar="A", help="Name of a run, the beginning of it, or `last`.")],
    after: Annotated[str, typer.Argument(metavar="B", help="The run to compare it with; differences are B less A.")],
    data_dir: DataDir = None,
    clickhouse_url: Annotated[str | None, typer.Option(help="Where the runs' results are, if not embedded.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with all that changed.")] = False,
) -> None:
    """Compare two runs: inputs that differ, scores of each arm, marks, outcomes, cells and tools that changed."""
    with explained():
        import asyncio

        from proctor.core.reports.run_comparison_json import build_comparison_json
        from proctor.core.reports.run_comparison_text import render_comparison
        from proctor.local.comparing import compare_stored
        from proctor.local.rundir import find_run
        from proctor.settings import resolve_data_dir

        root = resolve_data_dir(data_dir)
        first, second = find_run(root / "runs", before), find_run(root / "runs", after)

        async def describe() -> str:
            found = await compare_stored(first, second, root, clickhouse_url=clickhouse_url)
            return json.dumps(build_comparison_json(found), ensure_ascii=False) if as_json else render_comparison(found)

        # A text, not what it describes: taking its signal handler back, `run` writes out whatever a task returned.
        typer.echo(asyncio.run(describe()))
