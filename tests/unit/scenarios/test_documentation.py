"""What docs/scenarios.md shows works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proctor.core.grading.checks import check_answer, find_statement
from proctor.core.grading.facts import fill_text
from proctor.core.grading.rubric import Rubric, compile_rubric
from proctor.core.scenarios.answer import AnswerKey
from proctor.core.scenarios.brief import Brief
from proctor.core.scenarios.document import parse_document
from proctor.core.scenarios.policies import Policies
from proctor.core.scenarios.reference import load_reference
from proctor.settings import example_scenario_dir
from support.playing import ROOT

PAGE = (ROOT / "docs" / "scenarios.md").read_text()
SHOWN: dict[str, str] = dict(re.findall(r"^```yaml (\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
EXAMPLE = example_scenario_dir()
FACTS = load_reference(EXAMPLE).facts
KEY = parse_document(SHOWN["answer"], AnswerKey, "docs/scenarios.md")


@pytest.fixture(scope="module")
def rubric() -> Rubric:
    return compile_rubric(KEY, FACTS, told=parse_document(SHOWN["brief"], Brief, "docs").prompt)


def test_all_shown_files_load() -> None:
    """Issue, docs: every snippet is tested."""
    assert set(SHOWN) == {"brief", "answer", "policies", "variants"}
    assert "strongest-decoy" in parse_document(SHOWN["policies"], Policies, "docs").impostors


@pytest.mark.parametrize("name", SHOWN)
def test_the_page_shows_the_files_that_new_makes(name: str) -> None:
    """Issue, part 7: one source for the worked example and for `proctor scenario new`."""
    assert SHOWN[name] == (EXAMPLE / f"{name}.yaml").read_text()


def test_the_worked_example_holds_its_sentences(rubric: Rubric) -> None:
    """Grading rule 3: the example's must-fire and must-not-fire sentences."""
    for line in KEY.criteria:
        missed = [text for text in line.fires if find_statement(rubric, line.id, fill_text(text, rubric.facts)) is None]
        loud = [text for text in line.silent if find_statement(rubric, line.id, fill_text(text, rubric.facts))]
        assert (missed, loud) == ([], []), line.id


@pytest.mark.parametrize("answer", KEY.answers, ids=lambda answer: answer.id)
def test_the_worked_examples_answers_land_in_their_bands(answer: object, rubric: Rubric) -> None:
    """M-A9: the example's whole answers."""
    whole = next(one for one in KEY.answers if one is answer)
    graded = check_answer(rubric, fill_text(whole.text, rubric.facts))
    assert whole.low <= graded.score <= whole.high, graded


def test_shown_files_of_a_folder_are_those_that_there_are() -> None:
    """The table of files names every file of a shipped folder."""
    shipped = {path.name for path in Path(ROOT / "scenarios" / "error-root-cause").iterdir()}
    assert shipped == set(re.findall(r"^\| `(\w+\.yaml)`", PAGE, re.MULTILINE))
