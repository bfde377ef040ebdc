"""`proctor validate`: every problem of a manifest, with file, line, field and fix."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proctor.cli.exits import ExitCode
from proctor.cli.options import Scenarios

if TYPE_CHECKING:
    from proctor.api.loading import Problem
    from proctor.api.suite import EvalSuite


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("validate")(validate)


def validate(
    suites: Annotated[list[Path], typer.Argument(help="Files with one EvalSuite each.", show_default=False)],
    scenarios: Scenarios = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per file.")] = False,
) -> None:
    """Check manifests without running anything. Exit codes: 0 all are valid, 64 one is not."""
    from proctor.api.loading import InvalidManifest, load_suite
    from proctor.settings import shipped_scenarios_dir

    folders = [*([scenarios] if scenarios is not None else []), shipped_scenarios_dir()]
    all_valid = True
    for path in suites:
        suite: EvalSuite | None = None
        problems: tuple[Problem, ...] = ()
        try:
            suite = load_suite(path, scenario_dirs=folders)
        except InvalidManifest as error:
            problems = error.problems
            all_valid = False
        found = _describe(path, suite, problems)
        if as_json:
            typer.echo(json.dumps(found, ensure_ascii=False))
        else:
            _print(path, found, problems)
    if not all_valid:
        raise typer.Exit(ExitCode.USAGE)


def _describe(path: Path, suite: EvalSuite | None, problems: tuple[Problem, ...]) -> dict[str, Any]:
    from proctor.api.locality import ignored_locally, unsupported_locally
    from proctor.reconcile.cells import expand_cells, looks_of

    found: dict[str, Any] = {"file": str(path), "valid": suite is not None}
    if suite is None:
        return found | {"problems": [asdict(problem) for problem in problems]}
    return found | {
        "suite": suite.metadata.name,
        "cells": len(expand_cells(suite.spec)),
        "mostCells": len(expand_cells(suite.spec, looks_of(suite.spec)[-1])),
        "ignoredLocally": ignored_locally(suite.spec),
        "unsupportedLocally": unsupported_locally(suite.spec),
    }


def _print(path: Path, found: dict[str, Any], problems: tuple[Problem, ...]) -> None:
    from proctor.core.reports.plan import span

    for problem in problems:
        typer.echo(str(problem), err=True)
    if problems:
        count = len(problems)
        typer.echo(f"{path}: {count} problem{'' if count == 1 else 's'}", err=True)
        return
    typer.echo(f"{path}: valid: suite {found['suite']}, {span(found['cells'], found['mostCells'])} cells")
    for note in found["ignoredLocally"]:
        typer.echo(f"  ignored on one machine: {note}")
    for note in found["unsupportedLocally"]:
        typer.echo(f"  needs a cluster: {note}")
