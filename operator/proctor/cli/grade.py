"""`proctor grade`: grade any text as the answer to a scenario, without a server running."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proctor.cli.exits import explained
from proctor.cli.judging import JudgeChoice, judge_text
from proctor.cli.options import DataDir, Scenarios
from proctor.errors import InvalidInput

if TYPE_CHECKING:
    from proctor.core.grading.judge_votes import Judgement
    from proctor.core.grading.marks import Grade
    from proctor.core.scenarios.answer import AnswerKey

_MAX_READ = 16 * 1024 * 1024


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("grade")(grade)


def grade(
    scenario: Annotated[str, typer.Option(help="The scenario's name.", show_default=False)],
    answer: Annotated[str, typer.Option(help="File with the answer; - reads standard input.", show_default=False)],
    judge: Annotated[
        str, typer.Option(help="An Anthropic model that judges beside the checks, or none; key from ANTHROPIC_API_KEY.")
    ] = "none",
    votes: Annotated[int, typer.Option(min=1, max=9, help="How often the judge judges; the median counts.")] = 1,
    base_url: Annotated[str | None, typer.Option(help="Where the judge is, if not at the provider's own host.")] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A further host that may get the key; may be repeated.")
    ] = None,
    secrets: Annotated[Path | None, typer.Option(help="Folder with secrets as NAME/KEY files.")] = None,
    scenarios: Scenarios = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Grade a text as the answer to a scenario.

    A judge is first tried on planted answers of the scenario. Exit codes: 0 graded, 3 the judge gives no marks or is
    not to be trusted, 64 bad usage.
    """
    with explained():
        choice = None
        if judge != "none":
            choice = JudgeChoice(judge, votes, base_url, tuple(allow_host or ()), secrets)
        grading = _grade(_Request(scenario, _read(answer), scenarios, data_dir), choice)
    if as_json:
        print(json.dumps(_render(grading), indent=1, ensure_ascii=False))
    else:
        _print_table(grading)


@dataclass(frozen=True, slots=True)
class _Request:
    scenario: str
    answer: bytes
    scenarios: Path | None
    data_dir: Path | None


@dataclass(frozen=True, slots=True)
class _Grading:
    grade: Grade
    judgement: Judgement | None
    source: str


def _grade(request: _Request, choice: JudgeChoice | None) -> _Grading:
    from decimal import Decimal

    from proctor.core.agents.prompt import told_text
    from proctor.core.grading.checks import check_answer
    from proctor.core.grading.combining import combine
    from proctor.core.grading.marks import Weights
    from proctor.core.grading.rubric import compile_rubric
    from proctor.core.scenarios.answer import load_answer
    from proctor.core.scenarios.brief import load_brief
    from proctor.core.scenarios.folder import find_scenario
    from proctor.settings import resolve_data_dir, shipped_scenarios_dir

    folder = find_scenario(request.scenarios or shipped_scenarios_dir(), request.scenario)
    key, brief = load_answer(folder), load_brief(folder)
    facts, source = _find_facts(folder, key, resolve_data_dir(request.data_dir))
    rubric = compile_rubric(key, facts, told=told_text(brief))
    if rubric.artifact is not None:
        raise InvalidInput(
            f"scenario {folder.name}: ungraded: its answers are run over the dataset, which only a run has at hand; "
            "`proctor run` grades them"
        )
    programmatic = check_answer(rubric, request.answer)
    judgement = None
    if choice is not None:
        from proctor.bootstrap.judge import ScenarioKey
        from proctor.core.grading.judge_votes import Judgement

        if programmatic.score == 0:
            judgement = Judgement(Decimal("0.0000"))  # nothing earns nothing: there is nothing to ask
        else:
            judgement = judge_text(choice, folder.name, ScenarioKey(key, brief, rubric.facts), request.answer)
    score = None if judgement is None else judgement.score
    return _Grading(combine(programmatic, judge=score, penalty=Decimal(0), weights=Weights()), judgement, source)


def _find_facts(folder: Path, key: AnswerKey, data_dir: Path) -> tuple[dict[str, Any], str]:
    """Facts of a dataset that was seeded here, else those of the reference record."""
    from proctor.core.scenarios.reference import load_reference
    from proctor.local.dataset_files import list_datasets

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


def _render(grading: _Grading) -> dict[str, Any]:
    """Numbers are numbers here: scripts compare them."""
    from proctor.core.grading.rendering import render_grade, render_judgement

    graded = grading.grade
    rendered = render_grade(graded)
    rendered["programmatic"]["score"] = float(graded.programmatic.score)
    rendered |= {"score": float(graded.score), "penalty": float(graded.penalty), "facts_from": grading.source}
    if grading.judgement is not None:
        rendered |= {"judge": float(grading.judgement.score), "judgement": render_judgement(grading.judgement)}
    return rendered


def _print_table(grading: _Grading) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from proctor.core.scenarios.answer import Polarity

    graded = grading.grade
    table = Table(box=None, pad_edge=False)
    for name in ("check", "weight", "", "why"):
        table.add_column(name, overflow="fold")
    for mark in graded.programmatic.checks:
        met, unmet = ("avoided", "blamed") if mark.polarity is Polarity.NEGATIVE else ("met", "not met")
        sign = Text(met, "green") if mark.satisfied else Text(unmet, "red")
        # The quoted words are the answer's: they must not be read as markup.
        table.add_row(mark.id, f"{mark.weight} {mark.polarity.value}", sign, Text(mark.why))
    for judged in grading.judgement.marks if grading.judgement is not None else ():
        table.add_row(judged.id, f"{judged.weight} judge", f"{judged.score}/5", Text(judged.reason))
    console = Console(highlight=False)
    console.print(table)
    if graded.programmatic.remark:
        console.print(Text(f"Nothing counts: {graded.programmatic.remark}."))
    console.print(f"score {graded.score} ({graded.scored_by}; facts from the {grading.source})")
