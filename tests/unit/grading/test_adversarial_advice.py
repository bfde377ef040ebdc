"""Answers to noisy-signals written to be graded wrongly: right ones in odd dress, wrong ones in good dress."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from proctor.core.grading.checks import check_answer
from proctor.core.scenarios.answer import Polarity
from support.grading import shipped_key, shipped_rubric

SCENARIO = "noisy-signals"
CORPUS = YAML(typ="safe").load(Path(__file__).with_name("adversarial_advice.yaml"))


@pytest.mark.parametrize("case", CORPUS["right"], ids=lambda case: case["text"][:40])
def test_right_advice_earns_whatever_its_dress(case: dict[str, str]) -> None:
    """M-A9, grading rule 3: lists, tables, prose, JSON; nothing that is kept counts as dropped."""
    graded = check_answer(shipped_rubric(SCENARIO), case["text"])
    assert [mark.id for mark in graded.checks if mark.polarity is Polarity.NEGATIVE and not mark.satisfied] == []
    assert graded.score >= Decimal(case["least"]), graded


@pytest.mark.parametrize("case", CORPUS["wrong"], ids=lambda case: case["text"][:40])
def test_wrong_advice_does_not(case: dict[str, str]) -> None:
    """Grading rules 2 and 3: whole levels dropped, halves mixed up, too little said."""
    assert check_answer(shipped_rubric(SCENARIO), case["text"]).score <= Decimal(case["most"])


def test_weights_are_those_of_the_scenario() -> None:
    """Scenarios, 2.3: positive weight 16, negative 24."""
    lines = shipped_key(SCENARIO).criteria
    positive = sum(line.weight for line in lines if line.polarity is Polarity.POSITIVE)
    assert (positive, sum(line.weight for line in lines) - positive) == (16, 24)
