"""The sentences and whole answers that each shipped rubric carries."""

from __future__ import annotations

import asyncio

import pytest

from proctor.core.grading.artifacts import check_artifact
from proctor.core.grading.checks import check_answer, find_statement
from proctor.core.grading.facts import fill_text
from proctor.core.grading.marks import Programmatic
from proctor.core.scenarios.answer import Polarity
from support.grading import NAMES, shipped_key, shipped_rubric

FIRES = [(name, line.id, sentence) for name in NAMES for line in shipped_key(name).criteria for sentence in line.fires]
SILENT = [
    (name, line.id, sentence) for name in NAMES for line in shipped_key(name).criteria for sentence in line.silent
]
TEXTS = [name for name in NAMES if shipped_key(name).artifact is None]
ARTIFACTS = [name for name in NAMES if name not in TEXTS]
"""What these earn is seen when they are run: tests/integration/agents/test_controls_through_servers.py."""
ANSWERS = [(name, answer.id) for name in TEXTS for answer in shipped_key(name).answers]
NOTHING = ["", " \n\t\n", ".", "\x00", "I can't help with that.", "I don't know.", "{}", "[]"]


@pytest.mark.parametrize(("name", "criterion", "sentence"), FIRES)
def test_a_criterion_matches_what_it_must(name: str, criterion: str, sentence: str) -> None:
    """Grading rule 3: must-fire sentences run as tests."""
    rubric = shipped_rubric(name)
    assert find_statement(rubric, criterion, fill_text(sentence, rubric.facts)) is not None


@pytest.mark.parametrize(("name", "criterion", "sentence"), SILENT)
def test_a_criterion_does_not_match_what_it_must_not(name: str, criterion: str, sentence: str) -> None:
    """Grading rule 3: must-not-fire sentences run as tests."""
    rubric = shipped_rubric(name)
    assert find_statement(rubric, criterion, fill_text(sentence, rubric.facts)) is None


@pytest.mark.parametrize(("name", "answer"), ANSWERS)
def test_whole_answers_score_in_their_band(name: str, answer: str) -> None:
    """M-A9, grading rule 2: whole answers with the score that careful people would give them."""
    rubric = shipped_rubric(name)
    whole = next(one for one in shipped_key(name).answers if one.id == answer)
    graded = check_answer(rubric, fill_text(whole.text, rubric.facts))
    assert whole.low <= graded.score <= whole.high, graded


@pytest.mark.parametrize("name", TEXTS)
def test_every_negative_check_has_six_sentences_of_each_kind(name: str) -> None:
    """Grading rule 3: at least six it must fire on and six it must not."""
    negatives = [line for line in shipped_key(name).criteria if line.polarity is Polarity.NEGATIVE]
    assert negatives
    assert all(len(line.fires) >= 6 and len(line.silent) >= 6 for line in negatives)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("answer", NOTHING)
def test_nothing_earns_nothing(name: str, answer: str) -> None:
    """Grading rule 2: an empty answer and a refusal score 0 in every scenario."""
    assert check_answer(shipped_rubric(name), answer).score == 0


@pytest.mark.parametrize("name", ARTIFACTS)
@pytest.mark.parametrize("answer", NOTHING)
def test_no_artifact_earns_nothing(name: str, answer: str) -> None:
    """Grading rule 2: what is no artifact asks nothing of the dataset, and scores 0."""
    key = shipped_rubric(name).artifact
    assert key is not None
    graded = asyncio.run(check_artifact(key, answer.encode(), None))
    assert isinstance(graded, Programmatic)
    assert graded.score == 0


def test_weights_are_those_of_the_scenario() -> None:
    """Scenarios, 2.1: positive weight 12, negative 10."""
    lines = shipped_key("error-root-cause").criteria
    positive = sum(line.weight for line in lines if line.polarity is Polarity.POSITIVE)
    assert (positive, sum(line.weight for line in lines) - positive) == (12, 10)


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("- Service: <<service>>\n- Tier: <<tier>>\n- Cache: <<cache>>\n- Error: <<error_type>>", True),
        ("- Service: <<service>>\n- Tier: <<tier>>\n\nSome calls are slow.\n\n- Cache: <<cache>>\n- Error: 500", False),
        ("- Service: <<service>>\n- Tier: <<tier>>\n- Ruled out: the network\n- Cache: <<cache>>", False),
    ],
)
def test_lines_with_keys_speak_of_one_thing(text: str, met: bool) -> None:
    """M-A9: a finding may be given as lines of what and value."""
    rubric = shipped_rubric("segmented-regression")
    assert (find_statement(rubric, "both", fill_text(text, rubric.facts)) is not None) == met


@pytest.mark.parametrize("name", [name for name in TEXTS if not shipped_rubric(name).reads_clauses])
def test_advice_earns_the_same_whether_or_not_its_clauses_are_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures: what only advice is asked of is graded without reading its clauses, and to the same marks."""
    rubric = shipped_rubric(name)
    answers = [*NOTHING, *(fill_text(answer.text, rubric.facts) for answer in shipped_key(name).answers)]
    without = [check_answer(rubric, answer) for answer in answers]
    monkeypatch.setattr(type(rubric), "reads_clauses", True)
    assert [check_answer(rubric, answer) for answer in answers] == without
