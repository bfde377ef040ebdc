"""`proctor scenario`: look at scenarios."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from proctor.cli.exits import explained
from proctor.errors import InvalidInput

app = typer.Typer(name="scenario", help="Look at scenarios.", no_args_is_help=True)

DEFAULT_ANCHOR = "2026-11-30T12:00:00Z"
"""The quickstart's."""

Scenarios = Annotated[Path | None, typer.Option(help="Folder with scenario folders of your own.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def register(root: typer.Typer) -> None:
    """Add the group of commands."""
    root.add_typer(app)


@app.command("ls")
def list_all(scenarios: Scenarios = None, as_json: Json = False) -> None:
    """List the scenarios that there are."""
    from proctor.core.scenarios.folder import list_scenarios
    from proctor.settings import shipped_scenarios_dir

    names = list_scenarios(scenarios or shipped_scenarios_dir())
    print(json.dumps(names) if as_json else "\n".join(names))


@app.command()
def brief(
    scenario: Annotated[str, typer.Argument(help="The scenario's name.", show_default=False)],
    anchor: Annotated[str, typer.Option(help="The instant that relative times end at, with a zone.")] = DEFAULT_ANCHOR,
    max_turns: Annotated[int, typer.Option(help="Turns that the prompt speaks of.", min=1)] = 25,
    max_tool_calls: Annotated[int, typer.Option(help="Tool calls that the prompt speaks of.", min=1)] = 40,
    scenarios: Scenarios = None,
    as_json: Json = False,
) -> None:
    """Print what the agent is told: the neutral prompt, then the brief."""
    from proctor.clock import parse_instant
    from proctor.core.agents.prompt import PromptLimits, neutral_prompt
    from proctor.core.scenarios.brief import load_brief
    from proctor.core.scenarios.folder import find_scenario
    from proctor.settings import shipped_scenarios_dir

    with explained():
        folder = find_scenario(scenarios or shipped_scenarios_dir(), scenario)
        try:
            instant = parse_instant(anchor)
        except ValueError as error:
            raise InvalidInput(f"--anchor: {error}") from error
        limits = PromptLimits(max_turns=max_turns, max_tool_calls=max_tool_calls)
        told = neutral_prompt(load_brief(folder), instant, limits)
    if as_json:
        print(json.dumps({"system": told.system, "prompt": told.prompt}, indent=1, ensure_ascii=False))
    else:
        print(f"{told.system}\n\n{told.prompt}")
