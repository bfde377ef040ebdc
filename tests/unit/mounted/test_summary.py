"""The summary that a grader in a pod writes into a ConfigMap."""

from __future__ import annotations

from typing import Any

from proctor.core.digests import canonical_json
from proctor.core.grading.summary import MAX_SUMMARY_BYTES, shorten_summary
from proctor.core.ids import CellKey
from proctor.reconcile.grader_summary import parse_summary


def make_summary(cells: int, **grade: Any) -> bytes:
    whole = {"attempt": 1, "score": "0.8333", "ungraded": None, "marks": ["x" * 500], "judgement": None, **grade}
    names = [f"a-scenario-with-a-long-name/server-{n % 16}/model-{n % 10}/{n}" for n in range(1, cells + 1)]
    return canonical_json(
        {
            "grades": dict.fromkeys(names, whole),
            "rubricDigest": "r" * 64,
            "judgeDigest": "",
            "fault": "",
            "judge": None,
        }
    )


def test_scores_come_through_and_marks_stay_in_the_store() -> None:
    """issue, Status: the operator needs no ClickHouse; scores are all that a verdict rests on."""
    body = make_summary(2)
    short = shorten_summary(body)
    assert b"marks" not in short
    assert parse_summary(short) == parse_summary(body)


def test_the_largest_run_fits_into_a_configmap() -> None:
    """issue, Figures: 2,000 cells; even if every one is ungraded for a long reason."""
    short = shorten_summary(make_summary(2000, score=None, ungraded="why " * 200))
    assert len(short) <= MAX_SUMMARY_BYTES
    seen = parse_summary(short).grades
    assert len(seen) == 2000
    assert all(grade.score is None and grade.reason for grade in seen.values())


def test_an_ungraded_cell_never_looks_graded() -> None:
    """grading rule 7: ungraded is said, however little room there is."""
    short = shorten_summary(make_summary(3, score=None, ungraded="the judge could not be asked"), limit=10)
    assert {grade.reason for grade in parse_summary(short).grades.values()} == {"?"}
    assert CellKey.parse("a-scenario-with-a-long-name/server-1/model-1/1") in parse_summary(short).grades
