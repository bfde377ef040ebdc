"""What an answer advises to cut and to keep."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.grading.advice import Advice, read_advice

THINGS = ("heartbeats", "probes", "charges", "access logs", "relay debug")


def _names(words: str) -> bool:
    return any(thing in words for thing in THINGS)


def _advice_on(text: str, thing: str) -> set[Advice]:
    statements = read_advice(text, names=_names, skip=lambda _: False)
    return {statement.advice for statement in statements if thing in statement.text}


@pytest.mark.parametrize(
    ("text", "cut", "kept"),
    [
        ("Drop heartbeats, keep charges.", "heartbeats", "charges"),
        ("Keep charges and drop heartbeats.", "heartbeats", "charges"),
        ("Heartbeats can go, charges must stay.", "heartbeats", "charges"),
        ("Drop heartbeats, not charges.", "heartbeats", "charges"),
        ("Drop heartbeats rather than charges.", "heartbeats", "charges"),
        ("Drop everything except charges: heartbeats are noise.", "heartbeats", "charges"),
        ("Do not drop charges; filter heartbeats out.", "heartbeats", "charges"),
        ("Keep only 1 % of the heartbeats, and 100 % of the charges stays.", "heartbeats", "charges"),
        ("Stop logging heartbeats. Dropping charges would lose money.", "heartbeats", "charges"),
        ("Heartbeats: 2 M lines. Drop them. Charges: 1 M lines. Keep those.", "heartbeats", "charges"),
        ("## Drop\n- heartbeats\n\n## Keep\n- charges", "heartbeats", "charges"),
        ("Drop:\n- heartbeats\n\nKeep:\n- charges", "heartbeats", "charges"),
        ("### Heartbeats\n- 2 M lines\n- Action: throttle\n\n### Charges\n- Keep.", "heartbeats", "charges"),
        ("## Throttle\n- heartbeats. Keep the charges beside them.", "heartbeats", "charges"),
        ("| what | action |\n|---|---|\n| heartbeats | drop |\n| charges | keep |", "heartbeats", "charges"),
        ("| noise | must keep |\n|---|---|\n| heartbeats | charges |", "heartbeats", "charges"),
        ("| what | drop? |\n|---|---|\n| heartbeats | yes |\n| charges | no |", "heartbeats", "charges"),
        ("I recommend dropping the heartbeats but leaving charges alone.", "heartbeats", "charges"),
        ("Turn the heartbeats into a counter while charges stay.", "heartbeats", "charges"),
    ],
)
def test_each_thing_gets_its_own_advice(text: str, cut: str, kept: str) -> None:
    """Grading rule 3: clauses, lists, tables and headings; what must stay is never read as dropped."""
    assert _advice_on(text, cut) == {Advice.CUT}
    assert _advice_on(text, kept) == {Advice.KEEP}


@pytest.mark.parametrize(
    "text",
    [
        "There are 2 M heartbeats.",
        "Heartbeats might be noise.",
        "Should we drop the heartbeats?",
        "It is hard to say whether heartbeats are noise.",
        "heartbeats, probes, charges",
        "## What to drop and what to keep\n- heartbeats",
    ],
)
def test_what_is_neither_said_to_go_nor_to_stay_has_no_advice(text: str) -> None:
    """Grading rule 2: naming, asking and hedging give none."""
    assert _advice_on(text, "heartbeats") == {Advice.NONE}


def test_an_item_speaks_for_itself() -> None:
    """Where an item says what part of it goes, the heading does not say it of the whole."""
    text = "We throttle the following:\n- relay debug is loud. Only its heartbeats should be dropped."
    assert _advice_on(text, "relay debug") == {Advice.NONE}
    assert _advice_on(text, "heartbeats") == {Advice.CUT}


def test_a_whole_with_an_exception_is_limited() -> None:
    """A blanket of which a part is excepted is none."""
    statements = read_advice("Drop all relay debug except charges.", names=_names, skip=lambda _: False)
    assert [(one.advice, one.limited) for one in statements] == [(Advice.CUT, True), (Advice.KEEP, False)]


def test_what_is_not_the_answers_own_is_left_out() -> None:
    """Grading rule 2: sentences of the brief say nothing."""
    assert read_advice("Drop heartbeats.", names=_names, skip=lambda _: True) == []


@given(st.text(alphabet="dropke #-|*\n.:,;()notheartbeats", max_size=400))
def test_no_text_breaks_it(text: str) -> None:
    """Hostile input: any text is read."""
    assert isinstance(read_advice(text, names=_names, skip=lambda _: False), list)


@pytest.mark.parametrize("piece", ["drop ", "- drop\n", "not drop ", "| a ", "#", "drop, not ", "heartbeats. drop. "])
def test_repeated_text_is_read_in_bounded_work(piece: str) -> None:
    """Hostile input: an answer of the greatest size gives a bounded number of statements."""
    statements = read_advice(piece * (16_384 // len(piece)), names=_names, skip=lambda _: False)
    assert len(statements) <= 16_384
