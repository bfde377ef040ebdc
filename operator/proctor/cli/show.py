"""`proctor show`: a run's table, or what happened in one of its cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proctor.cli.exits import explained
from proctor.cli.options import DataDir

if TYPE_CHECKING:
    from proctor.local.reading import Trajectory
    from proctor.local.rundir import RunDir

_MOST_NAMED = 6
"""Cells that a message about a wrong name lists."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("show")(show)


def show(
    run: Annotated[str, typer.Argument(help="Name of the run, the beginning of it, or `last`.")],
    cell: Annotated[
        str | None, typer.Argument(help="A cell, as scenario/server/model/replicate, or a part that only it has.")
    ] = None,
    data_dir: DataDir = None,
    clickhouse_url: Annotated[str | None, typer.Option(help="Where the run's results are, if not embedded.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Show whole requests and results.")] = False,
    tools: Annotated[bool, typer.Option("--tools", help="Show what each tool of each arm did instead.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; with --full, bodies too.")] = False,
) -> None:
    """Show a run and its cells; with CELL, its trajectory, its answer, and why each mark was given."""
    with explained():
        from proctor.local.rundir import find_run
        from proctor.settings import resolve_data_dir

        root = resolve_data_dir(data_dir)
        directory = find_run(root / "runs", run)
        if tools:
            _show_tools(directory, root, clickhouse_url=clickhouse_url, as_json=as_json)
        elif cell is None:
            _show_run(directory, as_json=as_json)
        elif as_json:
            _print_cell(directory, root, cell, clickhouse_url=clickhouse_url, full=full)
        else:
            _show_cell(directory, root, cell, clickhouse_url=clickhouse_url, full=full)


def _show_run(directory: RunDir, *, as_json: bool) -> None:
    from proctor.cli.outcome import render_run
    from proctor.core.reports.grid import Align, Grid, render_grid
    from proctor.core.reports.inert import make_inert

    run, cells = directory.read_whole()
    if as_json:
        typer.echo(json.dumps({"run": run.to_file(), "cells": cells}, ensure_ascii=False))
        return
    typer.echo(render_run(run, directory.read_suite(), cells, directory=str(directory.run_file)))
    typer.echo("")
    rows = tuple(
        (
            str(one.get("cell", "")),
            str(one.get("score") or "–"),
            str(one.get("outcome") or one.get("state")),
            make_inert(str(one.get("reason", ""))),
        )
        for one in cells
    )
    aligns = (Align.LEFT, Align.RIGHT, Align.LEFT, Align.LEFT)
    typer.echo("\n".join(render_grid(Grid(("cell", "score", "ended", "why"), aligns, rows))))


def _show_tools(directory: RunDir, data_dir: Path, *, clickhouse_url: str | None, as_json: bool) -> None:
    import asyncio

    from proctor.core.reports.inert import make_inert
    from proctor.core.reports.tool_table import build_tools_json, render_tools
    from proctor.local.reading import read_tools

    uid = directory.read_run().metadata.uid or ""
    (tools,) = asyncio.run(read_tools(data_dir, [uid], clickhouse_url=clickhouse_url))
    if as_json:
        typer.echo(json.dumps(build_tools_json(tools), ensure_ascii=False))
        return
    typer.echo(make_inert(render_tools(tools), keep_lines=True))


def _print_cell(directory: RunDir, data_dir: Path, text: str, *, clickhouse_url: str | None, full: bool) -> None:
    from proctor.core.export.events import build_event_json
    from proctor.core.trajectory.attempt_json import render_record

    cell, found = _read_cell(directory, data_dir, text, clickhouse_url=clickhouse_url)
    document = {
        "cell": cell,
        "attempt": render_record(found.record),
        "events": [build_event_json(found.record.key, event) for event in found.events],
    }
    if full:
        document["bodies"] = {digest: body.decode("utf-8", "replace") for digest, body in found.bodies.items()}
    typer.echo(json.dumps(document, ensure_ascii=False))


def _show_cell(directory: RunDir, data_dir: Path, text: str, *, clickhouse_url: str | None, full: bool) -> None:
    from proctor.cli.trajectory import render_marks, render_trajectory

    cell, found = _read_cell(directory, data_dir, text, clickhouse_url=clickhouse_url)
    typer.echo(render_trajectory(found.record, found.events, found.bodies, full=full))
    typer.echo("")
    typer.echo(render_marks(cell))


def _read_cell(
    directory: RunDir, data_dir: Path, text: str, *, clickhouse_url: str | None
) -> tuple[dict[str, Any], Trajectory]:
    import asyncio

    from proctor.core.ids import CellKey
    from proctor.local.reading import read_trajectory

    uid = directory.read_run().metadata.uid or ""
    cell = _find_cell(directory, text)
    key = CellKey.parse(cell["cell"])
    return cell, asyncio.run(read_trajectory(data_dir, uid, key, clickhouse_url=clickhouse_url))


def _find_cell(directory: RunDir, text: str) -> dict[str, Any]:
    from proctor.errors import InvalidInput

    cells = directory.read_cells()
    exact = [cell for cell in cells if cell.get("cell") == text]
    found = exact or [cell for cell in cells if text in str(cell.get("cell", ""))]
    if len(found) == 1:
        return found[0]
    of = found or cells
    some = ", ".join([*(str(cell.get("cell")) for cell in of[:_MOST_NAMED]), *(["…"] if len(of) > _MOST_NAMED else [])])
    problem = "may be any of" if found else "is none of"
    raise InvalidInput(f"cell {text!r} {problem} run {directory.name}'s cells: {some}")
