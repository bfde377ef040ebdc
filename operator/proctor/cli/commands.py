"""The commands of `proctor`, each with the module that has it: only what was asked for is imported and built."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Annotated

import typer

COMMANDS: Mapping[str, str] = {
    "validate": "validate",
    "init": "init",
    "doctor": "doctor",
    "plan": "plan",
    "generate": "generate",
    "dataset": "dataset",
    "scenario": "scenario",
    "grade": "grade",
    "run": "run",
    "runs": "runs",
    "cancel": "runs",
    "show": "show",
    "compare": "compare",
    "export": "export",
    "report": "report",
    "wait": "wait",
}
"""By name, the module in this package whose `register` adds it."""


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("proctor"))
        raise typer.Exit


def build_app(command: str | None = None) -> typer.Typer:
    """Return the command line.

    Args:
        command: all that will be asked of it; everything is there where this is no command's name.
    """
    app = typer.Typer(
        name="proctor",
        help="Did this change to an MCP server, a tool, a prompt or a model make the agent better or worse?",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(proctor)
    wanted = COMMANDS.get(command or "")
    for module in dict.fromkeys([wanted] if wanted else COMMANDS.values()):
        import_module(f"proctor.cli.{module}").register(app)
    return app


def proctor(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Evaluate agents through MCP servers, and say how sure the answer is."""
