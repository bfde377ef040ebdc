"""YAML as hostile input."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.api.documents import MAX_BYTES, DocumentError, parse_document


def test_values_keep_their_lines() -> None:
    """Manifest: every problem names its line."""
    document = parse_document("a: 1\nb:\n- x\n- {c: 'y'}\n")
    assert document.value == {"a": 1, "b": ["x", {"c": "y"}]}
    assert document.line_of(("b", 1, "c")) == 4
    assert document.line_of(("b", 0)) == 3
    assert document.line_of(("b", 7, "missing")) == 2


def test_plain_words_follow_yaml_1_2() -> None:
    """Manifest: `on`, `no` and instants stay text, so that they mean what they show."""
    document = parse_document("a: on\nb: no\nc: 2026-11-30T12:00:00Z\nd: 0x10\ne: 1.5\nf: ~\ng: 'true'\nh: true\n")
    assert document.value == {
        "a": "on",
        "b": "no",
        "c": "2026-11-30T12:00:00Z",
        "d": "0x10",
        "e": 1.5,
        "f": None,
        "g": "true",
        "h": True,
    }


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        pytest.param("a: 1\na: 2\n", 2, "already given on line 1", id="duplicate-key"),
        pytest.param("a: 1\n---\nb: 2\n", 2, "more than one document", id="two-documents"),
        pytest.param("", 1, "empty", id="empty"),
        pytest.param("a: !!python/object:os.system x\n", 1, "tag", id="tag"),
        pytest.param("a: {b: 1}\nc:\n  <<: {d: 1}\n", 3, "merge key", id="merge-key"),
        pytest.param("a: *b\n", 1, "", id="alias-without-anchor"),
        pytest.param("a: [1\n", 2, "not valid YAML", id="open-list"),
        pytest.param("{[1]: 2}\n", 1, "plain text", id="list-as-key"),
        pytest.param("a: " + "[" * 40 + "]" * 40, 1, "deeper", id="deep"),
        pytest.param("a: \x00\n", 1, "", id="control-character"),
        pytest.param("a: " + "x" * MAX_BYTES, 1, "larger", id="large"),
    ],
)
def test_what_is_dangerous_or_ambiguous_is_refused(text: str, line: int, word: str) -> None:
    """Bad input: each gets a clear error that names the line."""
    with pytest.raises(DocumentError) as caught:
        parse_document(text)
    assert caught.value.line == line
    assert word in caught.value.message


def test_aliases_may_repeat_but_not_multiply() -> None:
    """Bad input: an alias counts as all that it stands for, so a billion laughs end early."""
    assert parse_document("a: &x [1, 2]\nb: *x\n").value == {"a": [1, 2], "b": [1, 2]}
    bomb = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    with pytest.raises(DocumentError, match="aliases included"):
        parse_document(bomb)


def test_an_alias_to_what_holds_it_is_refused() -> None:
    """Bad input: nothing can contain itself."""
    with pytest.raises(DocumentError):
        parse_document("a: &x [*x]\n")


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Bad input: no text raises anything but a clear refusal."""
    with contextlib.suppress(DocumentError):
        parse_document(text)
