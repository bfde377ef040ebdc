"""`proctor grade`: grade any text as the answer to a scenario, without a server running."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proctor.cli.exits import explained
from proctor.errors import InvalidInput

if TYPE_CHECKING:
    from proctor.core.grading.marks import Grade
    from proctor.core.scenarios.answer import AnswerKey

_MAX_READ = 16 * 1024 * 1024


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("grade")(grade)


def grade(
    scenario: Annotated[str, typer.Option(help="The scenario's name.", show_default=False)],
    answer: Annotated[str, typer.Option(help="File with the answer; - reads standard input.", show_default=False)],
    judge: Annotated[str, typer.Option(help="Who grades what checks can't; none grades by checks alone.")] = "none",
    scenarios: Annotated[Path | None, typer.Option(help="Folder with scenario folders of your own.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder for engines, datasets and runs.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Grade a text as the answer to a scenario."""
    with explained():
        if judge != "none":
            raise InvalidInput(f"--judge {judge}: this version grades by checks alone: --judge none")
        graded, source = _grade(scenario, _read(answer), scenarios, data_dir)
    if as_json:
        print(json.dumps(_render(graded) | {"facts_from": source}, indent=1, ensure_ascii=False))
    else:
        _print_table(graded, source)


def _grade(scenario: str, answer: bytes, scenarios: Path | None, data_dir: Path | None) -> tuple[Grade, str]:
    from decimal import Decimal

    from proctor.core.agents.prompt import told_text
    from proctor.core.grading.checks import check_answer
    from proctor.core.grading.combining import combine
    from proctor.core.grading.marks import Weights
    from proctor.core.grading.rubric import compile_rubric
    from proctor.core.scenarios.answer import load_answer
    from proctor.core.scenarios.brief import load_brief
    from proctor.core.scenarios.folder import find_scenario
    from proctor.settings import default_data_dir, shipped_scenarios_dir

    folder = find_scenario(scenarios or shipped_scenarios_dir(), scenario)
    key = load_answer(folder)
    facts, source = _find_facts(folder, key, data_dir or default_data_dir())
    rubric = compile_rubric(key, facts, told=told_text(load_brief(folder)))
    return combine(check_answer(rubric, answer), judge=None, penalty=Decimal(0), weights=Weights()), source


def _find_facts(folder: Path, key: AnswerKey, data_dir: Path) -> tuple[dict[str, Any], str]:
    """Facts of a dataset that was seeded here, else those of the reference record."""
    from proctor.core.scenarios.reference import load_reference
    from proctor.local.datasets import list_datasets

    for record in list_datasets(data_dir):
        if record.label == folder.name and key.facts_digest in record.facts:
            return dict(record.facts[key.facts_digest]), f"dataset {record.hash}"
    return dict(load_reference(folder).facts), "reference record"


def _read(answer: str) -> bytes:
    try:
        if answer == "-":
            return sys.stdin.buffer.read(_MAX_READ)
        with Path(answer).open("rb") as stream:
            return stream.read(_MAX_READ)
    except OSError as error:
        raise InvalidInput(f"--answer {answer}: can't be read: {error.strerror}") from error


def _render(graded: Grade) -> dict[str, Any]:
    """Numbers are numbers here: scripts compare them."""
    from proctor.core.grading.rendering import render_grade

    rendered = render_grade(graded)
    rendered["programmatic"]["score"] = float(graded.programmatic.score)
    return rendered | {"score": float(graded.score), "penalty": float(graded.penalty)}


def _print_table(graded: Grade, source: str) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name in ("check", "weight", "", "why"):
        table.add_column(name, overflow="fold")
    for mark in graded.programmatic.checks:
        sign = Text("met", "green") if mark.satisfied else Text("not met", "red")
        # The quoted words are the answer's: they must not be read as markup.
        table.add_row(mark.id, f"{mark.weight} {mark.polarity.value}", sign, Text(mark.why))
    console = Console(highlight=False)
    console.print(table)
    if graded.programmatic.remark:
        console.print(Text(f"Nothing counts: {graded.programmatic.remark}."))
    console.print(f"score {graded.score} ({graded.scored_by}; facts from the {source})")
