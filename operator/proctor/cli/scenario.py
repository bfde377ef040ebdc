"""`proctor scenario`: look at scenarios, make and check them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proctor.cli.exits import ExitCode, explained
from proctor.cli.options import DataDir, Scenarios
from proctor.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proctor.core.fairness.folder import Draft
    from proctor.core.scenarios.document import Fault
    from proctor.local.fairness import Trial

app = typer.Typer(name="scenario", help="Look at scenarios, make and check them.", no_args_is_help=True)

DEFAULT_ANCHOR = "2026-11-30T12:00:00Z"
"""The quickstart's."""

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


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="The scenario's name; no word of it may stand in its brief.")],
    scenarios: Annotated[Path, typer.Option(help="Folder to make it in.")] = Path("scenarios"),
) -> None:
    """Make a small scenario that works, to be rewritten piece by piece.

    Exit codes: 0 made, 64 there is one of that name already.
    """
    with explained():
        from proctor.core.fairness.brief import check_words
        from proctor.core.fairness.folder import read_draft

        folder = _copy_example(name, scenarios)
        draft = read_draft(folder)
        print(f"made {folder}; next: proctor scenario check {folder}")
        for fault in check_words(draft, draft.brief, draft.recipe) if draft.brief else ():
            print(f"first: {fault}")


def _copy_example(name: str, scenarios: Path) -> Path:
    """Copy the worked example of docs/scenarios.md; the folder appears whole or not at all."""
    import secrets
    import shutil

    from pydantic import TypeAdapter, ValidationError

    from proctor.core.scenarios.document import Slug
    from proctor.settings import example_scenario_dir

    folder = scenarios / name
    try:
        TypeAdapter(Slug).validate_python(name)
    except ValidationError as error:
        raise InvalidInput(f"scenario {name!r}: small letters, digits and -, beginning with a letter") from error
    if folder.exists():
        raise InvalidInput(f"{folder} exists: choose another name")
    staging = scenarios / f".{name}-{secrets.token_hex(4)}"
    try:
        scenarios.mkdir(parents=True, exist_ok=True)
        shutil.copytree(example_scenario_dir(), staging, ignore=shutil.ignore_patterns("__pycache__"))
        staging.rename(folder)
    except OSError as error:
        shutil.rmtree(staging, ignore_errors=True)
        raise InvalidInput(f"making {folder}: {error.strerror or error}") from error
    return folder


@app.command()
def check(
    folder: Annotated[str, typer.Argument(help="The scenario's folder, or a shipped one's name.", show_default=False)],
    static: Annotated[bool, typer.Option("--static", help="Look at the files alone; seed and play nothing.")] = False,
    volume: Annotated[
        str | None, typer.Option(help="Share of the background's rows to seed; the reference record's if left out.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="One dataset seed alone, instead of the three.", min=0)] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Say whether a scenario is fair; every fault with its file, line and fix.

    First the files; if they are all right, the scenario is seeded, its facts are asked, and its scripted models are
    played. Where it has variants, all that is done as it is written, and with two other dataset seeds. Exit codes: 0
    fair, 1 unfair, 64 bad usage.
    """
    with explained():
        from proctor.core.fairness.check import check_files
        from proctor.core.fairness.folder import read_draft
        from proctor.core.fairness.variants import choose_seeds

        found = _find_folder(folder)
        first = read_draft(found) if seed is None else read_draft(found, seed)
        seeds = choose_seeds(first) if seed is None else (seed,)
        drafts = [first if one == first.seed else read_draft(found, one) for one in seeds]
        # What is wrong with one of them is likely to be wrong with the next: it is said once.
        faults = next(filter(None, map(check_files, drafts)), ())
        trials: list[Trial] = []
        for draft in () if faults or static else drafts:
            trials.append(_try(draft, volume, data_dir))
            faults = trials[-1].faults
            if faults:
                break
    _print_check(found, faults, trials, as_json=as_json)
    if faults:
        raise typer.Exit(ExitCode.FAIL)


def _find_folder(folder: str) -> Path:
    from proctor.core.scenarios.folder import find_scenario
    from proctor.settings import shipped_scenarios_dir

    path = Path(folder)
    if path.is_dir():
        return path if path.name else path.resolve()
    if "/" in folder:
        raise InvalidInput(f"scenario {folder}: there is no such folder")
    return find_scenario(shipped_scenarios_dir(), folder)


def _try(draft: Draft, volume: str | None, data_dir: Path | None) -> Trial:
    import asyncio
    from decimal import Decimal, InvalidOperation

    from proctor.cli.dataset import progress_bar
    from proctor.local.dataset_files import SeedRequest
    from proctor.local.fairness import try_scenario
    from proctor.settings import resolve_data_dir

    _, reference = draft.scenario()
    try:
        share = Decimal(volume or reference.volume)
    except InvalidOperation as error:
        raise InvalidInput(f"--volume {volume or reference.volume!r}: no number") from error
    request = SeedRequest(
        draft.folder,
        seed=draft.seed,
        anchor=reference.anchor,
        volume=share,
        with_facts=False,  # asked one by one, so that each fault is told
    )
    with progress_bar() as show:
        return asyncio.run(try_scenario(draft, request, data_dir=resolve_data_dir(data_dir), on_progress=show))


def _print_check(folder: Path, faults: tuple[Fault, ...], trials: Sequence[Trial], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(_render_check(folder, faults, trials), indent=1, ensure_ascii=False))
        return
    for fault in faults:
        print(fault)
    name, count = folder.name, len(faults)
    for trial in trials:
        record = trial.record
        print(f"dataset {record.hash}: {record.rows:,} rows, volume {record.volume}, seed {record.seed}")
        for policy, one in trial.scores.items():
            print(f"  {policy:<20} {one.score}  ({one.band.low} to {one.band.high})")
    says = f"unfair: {count} fault{'' if count == 1 else 's'}" if faults else "fair"
    print(f"{name}: {says}{'' if trials or faults else ', by its files alone'}")


def _render_check(folder: Path, faults: tuple[Fault, ...], trials: Sequence[Trial]) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "scenario": folder.name,
        "folder": str(folder),
        "fair": not faults,
        "faults": [asdict(fault) for fault in faults],
        "trials": [_render_trial(trial) for trial in trials],
    }


def _render_trial(trial: Trial) -> dict[str, Any]:
    record = trial.record
    return {
        "dataset": {"hash": record.hash, "rows": record.rows, "volume": str(record.volume), "seed": record.seed},
        "policies": {
            name: {"score": float(one.score), "low": float(one.band.low), "high": float(one.band.high)}
            for name, one in trial.scores.items()
        },
    }
