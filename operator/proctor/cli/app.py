"""The command `proctor`: one module per group of commands, each importing what it needs only when it runs."""

from __future__ import annotations

import typer

app = typer.Typer(
    name="proctor",
    help="Did this change to an MCP server, a tool, a prompt or a model make the agent better or worse?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def proctor() -> None:
    """Evaluate agents through MCP servers, and say how sure the answer is."""


def _add_groups() -> None:
    from proctor.cli import dataset, generate, grade, init, plan, run, runs, scenario, show, validate

    validate.register(app)
    init.register(app)
    plan.register(app)
    generate.register(app)
    app.add_typer(dataset.app, name="dataset")
    app.add_typer(scenario.app, name="scenario")
    grade.register(app)
    run.register(app)
    runs.register(app)
    show.register(app)


_add_groups()
