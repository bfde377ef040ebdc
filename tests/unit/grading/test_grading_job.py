"""The grading job over a store in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from proctor.adapters.clickhouse.results import GradeRow
from proctor.bootstrap.grade import GraderParts, build_grader, parse_grader_config
from proctor.core.digests import digest_bytes
from proctor.core.grading.attempts import digest_rubrics
from proctor.core.grading.marks import Weights
from proctor.core.grading.rows import Fetched, Question, Rows, RowSource
from proctor.core.scenarios.reference import load_reference
from proctor.core.trajectory.outcome import AttemptRecord, Outcome
from proctor.errors import InvalidInput
from proctor.jobs.grade import GradingJob
from support.grade_store import MemoryStore
from support.grading import shipped_key, shipped_rubric
from support.playing import SCENARIOS
from support.results import make_attempt, make_key

SCENARIO = "error-root-cause"
RIGHT = b"Root cause: payments-api can't connect to payments-pg-2.db.fernway.internal (DBTimeout)."


def make_record(replicate: int = 1, *, answer: bytes = RIGHT, **changes: Any) -> AttemptRecord:
    key = make_key(replicate=replicate, attempt=changes.pop("attempt", 1))
    return make_attempt(key, answer_digest=digest_bytes(answer), agent_tool_errors=0, **changes)


def make_parts(store: MemoryStore, summary: Path) -> GraderParts:
    rubric = shipped_rubric(SCENARIO)
    return GraderParts(
        run="run-1",
        store=store,
        rubrics={SCENARIO: rubric},
        rubric_digest=digest_rubrics({SCENARIO: rubric.digest}),
        weights=Weights(),
        summary=summary,
    )


def read(summary: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(summary.read_bytes())
    return found


@dataclass
class TellingStore(MemoryStore):
    """A store that tells when grades came in."""

    told: asyncio.Event = field(default_factory=asyncio.Event)

    async def write_grades(self, grades: Sequence[GradeRow]) -> None:
        await super().write_grades(grades)
        self.told.set()


async def run_to_end(job: GradingJob) -> None:
    ended = asyncio.Event()
    ended.set()
    await job.run(ended)


async def test_ended_attempts_are_graded_and_summed_up(tmp_path: Path) -> None:
    """M-A9, P27: each ended attempt has a grade in the store and in the summary, with all its marks."""
    store, summary = MemoryStore(), tmp_path / "summary.json"
    store.put(make_record(1), RIGHT)
    store.put(make_record(2, answer=b"It is the CDN."), b"It is the CDN.")
    store.put(make_record(3, outcome=Outcome.INFRA_ERROR), RIGHT)
    await run_to_end(GradingJob(make_parts(store, summary)))
    grades = read(summary)["grades"]
    assert {cell.split("/")[-1]: grade["attempt"] for cell, grade in grades.items()} == {"1": 1, "2": 1}
    scores = [float(grade["score"]) for grade in grades.values()]
    assert scores[0] > 0.5
    assert scores[1] == 0
    assert len(grades[str(make_key(replicate=1).cell)]["programmatic"]["checks"]) == 13
    assert sorted(str(row.key.cell) for row in store.rows) == sorted(grades)
    assert read(summary)["rubricDigest"]


async def test_the_summary_is_there_before_the_first_grade(tmp_path: Path) -> None:
    """Manifest, status: the rubric's digest is fixed before the first cell."""
    await run_to_end(GradingJob(make_parts(MemoryStore(), tmp_path / "summary.json")))
    assert read(tmp_path / "summary.json")["grades"] == {}
    assert read(tmp_path / "summary.json")["rubricDigest"]


async def test_a_second_grader_takes_what_the_first_wrote(tmp_path: Path) -> None:
    """P27: idempotent; a grader that was killed and started again writes nothing twice and says the same."""
    store = MemoryStore()
    store.put(make_record(1), RIGHT)
    await run_to_end(GradingJob(make_parts(store, tmp_path / "one.json")))
    store.put(make_record(2), RIGHT)
    await run_to_end(GradingJob(make_parts(store, tmp_path / "two.json")))
    one, two = read(tmp_path / "one.json")["grades"], read(tmp_path / "two.json")["grades"]
    assert len(store.rows) == 2
    assert len(two) == 2
    assert two[str(make_key(replicate=1).cell)] == one[str(make_key(replicate=1).cell)]


@pytest.mark.parametrize("failures", [1, 2, 3, 4, 5])
async def test_clickhouse_away_while_grading_is_waited_out(failures: int, tmp_path: Path) -> None:
    """Faults, ClickHouse killed while grading: the grader asks ever less often, loses and doubles nothing."""
    store, pauses = MemoryStore(failures=failures), list[float]()

    async def note(seconds: float) -> None:
        pauses.append(seconds)

    store.put(make_record(1), RIGHT)
    await run_to_end(GradingJob(make_parts(store, tmp_path / "summary.json"), pause=note))
    assert len(pauses) == failures
    assert pauses == sorted(pauses)
    assert len(read(tmp_path / "summary.json")["grades"]) == 1
    assert len(store.rows) == 1


async def test_an_attempt_that_comes_late_is_graded_while_the_run_goes_on(tmp_path: Path) -> None:
    """Adaptive, P27: cells wait for the grades of a block or of the controls, so none may wait for the run's end."""
    store, summary = TellingStore(), tmp_path / "summary.json"
    store.put(make_record(1), RIGHT)
    job, ended = GradingJob(make_parts(store, summary), whole_seconds=0), asyncio.Event()
    await job.grade_new()
    late = make_record(2)
    store.put(replace(late, opened=late.opened - timedelta(hours=1), ended=late.ended - timedelta(hours=1)), RIGHT)
    assert await job.grade_new(all_again=False) == 0
    store.told.clear()
    running = asyncio.create_task(job.run(ended))
    async with asyncio.timeout(20):
        await store.told.wait()  # though the run goes on
    assert [row.key.cell.replicate for row in store.rows] == [1, 2]
    ended.set()
    await running


async def test_a_lost_answer_is_ungraded_not_zero(tmp_path: Path) -> None:
    """Grading rule 5 and style: where no grade can be formed the cell is ungraded, never 0."""
    store = MemoryStore()
    store.put(make_record(1), None)
    await run_to_end(GradingJob(make_parts(store, tmp_path / "summary.json")))
    (grade,) = read(tmp_path / "summary.json")["grades"].values()
    assert grade["score"] is None
    assert "answer" in grade["ungraded"]
    assert store.rows[0].score is None


class SameRows:
    """A dataset in which every query returns the same."""

    async def fetch(self, questions: Iterable[Question]) -> dict[Question, Fetched]:
        return {one: Rows((("web", "1"),)) for one in questions}


@pytest.mark.parametrize("rows", [{SCENARIO: SameRows()}, {}])
async def test_an_artifact_is_run_and_without_its_dataset_ungraded(rows: dict[str, RowSource], tmp_path: Path) -> None:
    """P29, grading rule 5: the grader runs what an answer holds; without a dataset there is no grade, never 0."""
    whole = next(one for one in shipped_key("dashboard-build").answers if one.id == "right-terse").text.encode()
    store, rubric = MemoryStore(), shipped_rubric("dashboard-build")
    store.put(make_record(1, answer=whole), whole)
    parts = replace(make_parts(store, tmp_path / "summary.json"), rubrics={SCENARIO: rubric}, rows=rows)
    await run_to_end(GradingJob(parts))
    (grade,) = read(tmp_path / "summary.json")["grades"].values()
    assert (grade["score"] is None) == (not rows)
    assert ("dataset is not at hand" in str(grade["ungraded"])) == (not rows)


async def test_a_new_attempt_of_a_cell_replaces_the_old_grade(tmp_path: Path) -> None:
    """Grading rule 9: the last attempt that infrastructure did not fail is the cell's."""
    store = MemoryStore()
    store.put(make_record(1, answer=b"nothing"), b"nothing")
    job = GradingJob(make_parts(store, tmp_path / "summary.json"))
    await job.grade_new()
    store.put(make_record(1, attempt=2), RIGHT)
    await job.grade_new()
    (grade,) = read(tmp_path / "summary.json")["grades"].values()
    assert grade["attempt"] == 2
    assert float(grade["score"]) > 0


def make_config(tmp_path: Path, **changes: Any) -> dict[str, Any]:
    suite = {
        "scenarios": [{"name": SCENARIO, "volume": "0.01"}],
        "anchor": "2026-11-30T12:00:00Z",
        "servers": [{"name": "s", "stdio": {"command": ["s"]}, "allowedTools": ["q"]}],
        "models": [{"name": "newest", "scripted": {"policy": "newest"}}],
        "replicates": 3,
        "judge": changes.pop("judge", {"none": True}),
        "gate": {"enforcement": "Audit"},
    }
    facts = dict(load_reference(SCENARIOS / SCENARIO).facts) | changes.pop("facts", {})
    return {
        "run": "run-1",
        "suite": suite,
        "store": {"host": "127.0.0.1", "port": 1, "user": "u", "password": "made-up-secret", "database": "d"},
        "scenarios": {SCENARIO: {"directory": str(SCENARIOS / SCENARIO), "facts": facts}},
        "summary": str(tmp_path / "summary.json"),
        **changes,
    }


async def test_a_configuration_becomes_parts(tmp_path: Path) -> None:
    """Architecture, grade process: answer keys are read from their folder, facts come from the dataset's record."""
    parts = build_grader(parse_grader_config(json.dumps(make_config(tmp_path)).encode()))
    assert parts.rubrics[SCENARIO].facts["failures"] == "8"
    assert parts.weights == Weights()
    assert parts.rows == {}


async def test_a_grader_that_is_told_of_a_dataset_asks_it(tmp_path: Path) -> None:
    """P29: in a pod and on one machine alike, the grader's configuration says where an answer's queries run."""
    config = make_config(tmp_path)
    config["scenarios"][SCENARIO]["dataset"] = config["store"]
    assert set(build_grader(parse_grader_config(json.dumps(config).encode())).rows) == {SCENARIO}


@pytest.mark.parametrize(
    "change",
    [
        {"judge": {"anthropic": {"model": "m", "secretKeyRef": {"name": "a", "key": "k"}}}},
        {"facts": {"failures": "many"}},
        {"facts": {"host": ""}},
        {"extra": 1},
        {"store": {"host": "h", "password": "made-up-secret"}},
    ],
)
def test_a_bad_configuration_is_refused_without_its_secret(change: dict[str, Any], tmp_path: Path) -> None:
    """S18: a message names the field, never a secret."""
    with pytest.raises(InvalidInput) as refused:
        build_grader(parse_grader_config(json.dumps(make_config(tmp_path, **change)).encode()))
    assert "made-up-secret" not in str(refused.value)
