"""`proctor generate`: the files that are written from the types, and the check that they are current."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from proctor.cli.exits import ExitCode, explained

Files = Iterator[tuple[str, str]]
"""Path below the repository's root, and text."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("generate", hidden=True)(generate)


def _crds() -> Files:
    from proctor.api.generation.crds import render_crds

    for name, text in render_crds():
        yield f"crds/{name}", text


def _chart() -> Files:
    from proctor.api.generation.chart import render_chart_crds

    yield from render_chart_crds()


def _manifest_reference() -> Files:
    from proctor.api.generation.reference import render_reference
    from proctor.api.run import EvalRun
    from proctor.api.suite import EvalSuite

    intro = "What `proctor run` and the operator take. Decimals are strings; unknown fields are refused."
    yield "docs/reference/evalsuite.md", render_reference(EvalSuite, "EvalSuite", intro)
    intro = "One execution of a suite. The local `run.json` is `{run: <this>, cells: […]}`."
    yield "docs/reference/evalrun.md", render_reference(EvalRun, "EvalRun", intro)


def _scenario_reference() -> Files:
    from proctor.api.generation.reference import render_reference
    from proctor.core.scenarios.answer import AnswerKey
    from proctor.core.scenarios.brief import Brief
    from proctor.core.scenarios.policies import Policies
    from proctor.core.scenarios.recipe import Recipe
    from proctor.core.scenarios.variants import Variants

    parts = (
        (Brief, "brief.yaml", "What the agent is told. Nothing else of a scenario is ever in a sandbox."),
        (Recipe, "recipe.yaml", "What is seeded: traffic, planted truth and decoys."),
        (AnswerKey, "answer.yaml", "What graders know: facts as queries over the seeded rows, checks, and the rubric."),
        (Policies, "policies.yaml", "What scripted models say; read by the gateway only."),
        (Variants, "variants.yaml", "What dataset seeds other than 42 redraw of the other files."),
    )
    for model, file, intro in parts:
        page = f"docs/reference/{file.removesuffix('.yaml')}.md"
        yield page, render_reference(model, file, intro)


def _metrics() -> Files:
    from proctor.adapters.prometheus.reference import render_metrics

    yield "docs/metrics.md", render_metrics()


def _cli_reference() -> Files:
    from proctor.cli.app import app
    from proctor.cli.reference import render_cli

    yield "docs/reference/cli.md", render_cli(app)


GENERATORS: tuple[Callable[[], Files], ...] = (
    _crds,
    _chart,
    _manifest_reference,
    _scenario_reference,
    _metrics,
    _cli_reference,
)
"""One per source; add a line for another."""

OWNED = ("crds", "docs/reference", "helm/proctor/templates/crds")
"""Folders that hold generated files only: what no generator writes any more is removed."""


def generate(
    root: Annotated[Path, typer.Option(help="The repository's root.")] = Path(),
    check: Annotated[bool, typer.Option("--check", help="Write nothing; print differences and exit 1.")] = False,
) -> None:
    """Write crds/, references and the chart's CRDs from the types. Exit codes: 0 current or written, 1 they differ."""
    with explained():
        wanted = {path: text for generator in GENERATORS for path, text in generator()}
        stale = [path for path in _existing(root) if path not in wanted]
        differing = {path: text for path, text in wanted.items() if _read(root / path) != text}
        if check:
            _report(root, differing, stale)
            return
        for path, text in differing.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, "utf-8")
        for path in stale:
            (root / path).unlink()
    typer.echo(f"{len(differing)} written, {len(stale)} removed, {len(wanted) - len(differing)} current")


def _report(root: Path, differing: Mapping[str, str], stale: list[str]) -> None:
    for path, text in differing.items():
        old, new = _read(root / path).splitlines(keepends=True), text.splitlines(keepends=True)
        typer.echo("".join(difflib.unified_diff(old, new, path, f"{path} (generated)")))
    for path in stale:
        typer.echo(f"{path}: no longer generated")
    if differing or stale:
        typer.echo("generated files differ: run `proctor generate` and commit", err=True)
        raise typer.Exit(ExitCode.FAIL)


def _existing(root: Path) -> list[str]:
    return sorted(
        str(path.relative_to(root)) for folder in OWNED for path in (root / folder).glob("*") if path.is_file()
    )


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
