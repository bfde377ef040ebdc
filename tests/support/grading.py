"""Rubrics of the shipped scenarios, ready with the facts of their reference records."""

from __future__ import annotations

from functools import cache

from proctor.core.agents.prompt import told_text
from proctor.core.grading.rubric import Rubric, compile_rubric
from proctor.core.scenarios.answer import AnswerKey, load_answer
from proctor.core.scenarios.brief import load_brief
from proctor.core.scenarios.folder import list_scenarios
from proctor.core.scenarios.reference import load_reference
from support.playing import SCENARIOS

NAMES = list_scenarios(SCENARIOS)


@cache
def shipped_key(name: str) -> AnswerKey:
    return load_answer(SCENARIOS / name)


@cache
def shipped_rubric(name: str) -> Rubric:
    folder = SCENARIOS / name
    return compile_rubric(shipped_key(name), load_reference(folder).facts, told=told_text(load_brief(folder)))
