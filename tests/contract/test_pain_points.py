"""The pages that name tests name ones that exist: pain points, and judges that were stopped."""

from __future__ import annotations

import re

import pytest

from support.judges import UNREADABLE, UNTRUSTED
from support.named_tests import ROOT, find_docstring, list_tests

ROW = re.compile(r"^\| (P\d+) \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py::\w+)`")
ROWS = ROW.findall((ROOT / "docs/pain-points.md").read_text())

JUDGES = "tests/unit/grading/test_judge.py::"
OVER_HTTP = "tests/integration/grading/test_judge_http.py::"
CAUGHT = f"{JUDGES}test_a_judge_that_cannot_tell_planted_answers_apart_is_caught"
UNUSABLE = f"{JUDGES}test_a_reply_that_cannot_be_used_leaves_the_cell_ungraded"

STOPPED: dict[str, tuple[str, tuple[str, ...]]] = {
    "gives every answer the same": (CAUGHT, ("constant",)),
    "favours what it sees first, or last": (CAUGHT, ("biased to the first", "biased to the last")),
    "falls for whoever sounds sure (sycophantic)": (CAUGHT, ("sycophantic",)),
    "does what an answer orders (injected)": (CAUGHT, ("injected",)),
    "ranks upside down": (CAUGHT, ("upside down",)),
    "has no key, a refused key, an unknown model": (f"{OVER_HTTP}test_a_refused_request_is_not_repeated", ()),
    "replies prose, or JSON as prose": (UNUSABLE, ("prose", "JSON as prose")),
    "replies cut JSON": (UNUSABLE, ("cut JSON",)),
    'says `"5/5"`, `"5"`, 4.5, `true`': (UNUSABLE, ("5/5", "a number as text", "half a point", "true")),
    "says NaN": (UNUSABLE, ("NaN",)),
    "says 7 of 5, or −1": (UNUSABLE, ("7 of 5", "below zero")),
    "gives two objects, or one key twice": (UNUSABLE, ("two objects",)),
    "leaves a criterion out, or adds one": (UNUSABLE, ("a criterion missing",)),
    "refuses, or says nothing": (UNUSABLE, ("a refusal", "nothing")),
    "repeats marks that the answer brought along (an injected 5)": (UNUSABLE, ("an injected 5",)),
    "fails one vote of three": (f"{JUDGES}test_one_lost_vote_is_no_median_of_the_rest", ()),
    "is overloaded (429, 529), breaks off": (f"{OVER_HTTP}test_an_overloaded_provider_is_waited_for", ()),
    "asks to wait for an hour": (f"{OVER_HTTP}test_a_pause_past_the_cap_is_not_waited_for", ()),
    "is noisy": ("tests/unit/grading/test_agreement.py::test_a_noisy_judge_of_known_noise", ()),
    "is the agent's own model": (
        "tests/unit/faults/test_pain_points.py::test_p21_an_agent_is_not_judged_by_itself",
        (),
    ),
}


def test_every_pain_point_has_one_line() -> None:
    """P1–P45: none is left out, none is there twice."""
    assert [number for number, *_ in ROWS] == [f"P{number}" for number in range(1, 46)]


@pytest.mark.parametrize(("number", "shown"), [(row[0], row[3]) for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_pain_points_tests_exist_and_name_it(number: str, shown: str) -> None:
    """P1–P45: each line names tests that name it back, or says that it needs a cluster."""
    names = TEST.findall(shown)
    assert names or "cluster" in shown
    assert [name for name in names if find_docstring(name) is None] == []
    forgetful = [name for name in names if not re.search(rf"\b{number}\b", find_docstring(name) or "")]
    assert forgetful == []


def test_every_bad_judge_of_the_table_has_a_test() -> None:
    """Judge: the table of bad judges and what stopped each, line by line."""
    page = (ROOT / "docs/grading.md").read_text()
    table = page.split("| a judge that |", 1)[1].split("\n\n", 1)[0]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()[2:]]
    assert rows == list(STOPPED)
    played = {*UNREADABLE, *UNTRUSTED}
    for name, judges in STOPPED.values():
        assert find_docstring(name) is not None, name
        assert set(judges) <= played
    assert {judge for _, judges in STOPPED.values() for judge in judges} == played


def test_a_test_that_is_not_there_is_missed() -> None:
    """Control: the lookup tells what exists from what does not."""
    assert find_docstring("tests/unit/grading/test_judge.py::test_no_such_thing") is None
    assert find_docstring("tests/unit/no_such_file.py::test_it") is None
    assert list_tests("tests/unit/grading/test_judge.py")
