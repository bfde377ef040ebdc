"""Answers as hostile input."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.core.grading.answer_text import MAX_ANSWER_BYTES, clean_answer
from proctor.core.grading.checks import check_answer
from support.grading import shipped_rubric

RIGHT = "Root cause: payments-api can't connect to payments-pg-2.db.fernway.internal (DBTimeout)."


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("a\x00b\x07c", "abc"),
        ("\x1b[1;31mred\x1b[0m \x1b]0;title\x07text", "red text"),
        ("pay\u200bments\u2060-\u00adapi\ufeff", "payments-api"),
        ("\u202ereversed\u202c", "reversed"),
        ("can\u2019t \u201cconnect\u201d \u2013 \u2014", 'can\'t "connect" -  - '),
        ("\uff30ayments", "Payments"),
        ("payments\u2011api", "payments-api"),
        ("line\r\nline", "line\n\nline"),
        ("\u0440ayments-\u0430pi", "payments-api"),
        ("Причина", "Причина"),
    ],
)
def test_one_form_for_what_looks_the_same(sent: str, read: str) -> None:
    """Grading: NUL, ANSI, control, bidi and zero-width signs go, dashes and quotes are plain, disguises fall."""
    assert clean_answer(sent) == read


def test_json_is_read_as_lines() -> None:
    """Grading: JSON answers are flattened; keys become words, lists stand under their key."""
    sent = json.dumps({"rootCause": "x", "ruled_out": ["cdn", {"suspect": "smtp", "related": False}], "n": {"deep": 8}})
    assert clean_answer(sent).split("\n") == [
        "root cause: x", "", "ruled out:", "- cdn", "- suspect: smtp, related: no", "#", "n deep: 8", "",
    ]  # fmt: skip


@pytest.mark.parametrize("sent", ["{", "[" * 50_000, '{"a": ' * 500 + "1" + "}" * 500, '"text"', "12", "null"])
def test_broken_or_deep_json_is_text(sent: str) -> None:
    """Grading: hostile JSON neither raises nor grows."""
    assert len(clean_answer(sent)) <= MAX_ANSWER_BYTES


def test_an_answer_is_cut_at_its_limit() -> None:
    """Manifest, the answer: at most 64 KiB are read, never cut into a broken character's crash."""
    assert len(clean_answer("é" * MAX_ANSWER_BYTES)) <= MAX_ANSWER_BYTES


@pytest.mark.parametrize(
    "hostile",
    [
        "(" * 60_000,
        "not " * 16_000,
        "root cause is " * 4_000,
        "payments-api " * 5_000,
        "|" * 60_000,
        "- " * 30_000,
        "# " * 30_000,
        "a, b is, c was, " * 3_500,
        "\x1b" * 60_000,
        "\u0430a" * 20_000,
        "?" * 60_000,
        "\n" * 60_000,
        "\ud800 lone surrogate",
    ],
    ids=range(13),
)
def test_hostile_answers_end(hostile: str) -> None:
    """Grading rule 4: linear in the answer's size, whatever it is; nothing raises."""
    assert check_answer(shipped_rubric("error-root-cause"), hostile).score == 0


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=2000) | st.text(max_size=2000))
def test_no_answer_raises(answer: bytes | str) -> None:
    """Grading: any bytes get a score between 0 and 1."""
    assert 0 <= check_answer(shipped_rubric("error-root-cause"), answer).score <= 1


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["\u200b", "\u2060", "\x00", "\u00ad"]), st.integers(0, len(RIGHT)))
def test_invisible_signs_change_nothing(sign: str, place: int) -> None:
    """Grading: an answer scores the same with a sign in it that nobody sees."""
    rubric = shipped_rubric("error-root-cause")
    assert check_answer(rubric, RIGHT[:place] + sign + RIGHT[place:]).score == check_answer(rubric, RIGHT).score
