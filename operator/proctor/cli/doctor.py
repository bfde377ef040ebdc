"""`proctor doctor`: what this machine lacks, and how to get it."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from proctor.cli.exits import ExitCode, explained
from proctor.cli.options import DataDir


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor)


def doctor(
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what this machine lacks for a run and how to get it; exit 0 if a run can go, 1 if none can."""
    with explained():
        import asyncio

        from proctor.core.reports.machine import build_findings_json, can_run, render_findings
        from proctor.local.doctor import examine
        from proctor.settings import resolve_data_dir

        root = resolve_data_dir(data_dir)
        findings = asyncio.run(examine(root))
        typer.echo(
            json.dumps(build_findings_json(findings), ensure_ascii=False) if as_json else render_findings(findings)
        )
        if not can_run(findings):
            raise typer.Exit(ExitCode.FAIL)
