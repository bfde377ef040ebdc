"""Answers to error-root-cause written to be graded wrongly: right ones in odd dress, wrong ones in good dress."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from proctor.core.grading.checks import check_answer
from proctor.core.scenarios.answer import Polarity
from support.grading import shipped_rubric

CORPUS = YAML(typ="safe").load(Path(__file__).with_name("adversarial_answers.yaml"))


@pytest.mark.parametrize("case", CORPUS["right"], ids=lambda case: case["text"][:40])
def test_right_answers_earn_whatever_their_dress(case: dict[str, str]) -> None:
    """M-A9, grading rule 3: other words, word orders, languages and layouts; no decoy counts as blamed."""
    graded = check_answer(shipped_rubric("error-root-cause"), case["text"])
    fired = [mark for mark in graded.checks if mark.polarity is Polarity.NEGATIVE and not mark.satisfied]
    assert fired == []
    assert graded.score >= Decimal(case["least"]), graded


@pytest.mark.parametrize("case", CORPUS["wrong"], ids=lambda case: case["text"][:40])
def test_wrong_answers_do_not(case: dict[str, str]) -> None:
    """Grading rules 2 and 3: blame of a decoy, hedges, lists of everything, refusals, denial of the truth."""
    graded = check_answer(shipped_rubric("error-root-cause"), case["text"])
    assert graded.score <= Decimal(case["most"]), graded
