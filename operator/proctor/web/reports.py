"""A run of a cluster → its page: what its EvalRun says, the suite that it is fixed to, and what the store has."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from pydantic import ValidationError

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.results import DEFAULT_DATABASE, GradeRow, ResultsStore
from proctor.adapters.clickhouse.run_rows import RunRows
from proctor.adapters.kube.kinds import CONFIG_MAP
from proctor.api.loading import digest_suite
from proctor.api.run import EvalRun, EvalRunSpec, EvalRunStatus
from proctor.api.suite import EvalSuiteSpec, Metadata
from proctor.bootstrap.run_parts import ShownAttempts, no_collecting, read_parts
from proctor.bootstrap.stored_run import StoredRun
from proctor.core.reports.page import render_page
from proctor.errors import InvalidInput
from proctor.manifests.documents import SUITE_KEY, SUMMARY_KEY
from proctor.manifests.names import RunNames
from proctor.reconcile.grader_summary import parse_summary
from proctor.reconcile.observed import GraderSeen, Observed
from proctor.reconcile.run_cells import render_cells
from proctor.reconcile.run_page import StoredParts, add_stored, build_run_facts
from proctor.reconcile.snapshot import RunSnapshot
from proctor.web.reading import Reader


@dataclass(frozen=True, slots=True)
class Reports:
    """Renders pages.

    Attributes:
        reader: the API server.
        store: where results are.
    """

    reader: Reader
    store: Endpoint
    _one: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def render(self, body: Mapping[str, Any]) -> str:
        """Return a run's page.

        Raises:
            InvalidInput: the run has not begun, or is of another version.
            Retryable: the store or the API server does not answer.
            Terminal: one of them can't be read.
        """
        run = read_run(body)
        if run.status.started is None:
            raise InvalidInput(
                f"EvalRun {run.metadata.namespace}/{run.metadata.name} has not begun: it shows nothing yet"
            )
        uid = run.metadata.uid or ""
        names = RunNames.of(uid)
        suite = _parse_suite(run, await self._read_config(run, names.suite))
        summary = (await self._read_config(run, names.grades)).get(SUMMARY_KEY)
        grader = parse_summary(summary.encode()) if summary else GraderSeen()
        # A run's events are all in memory while its page is made: one page at a time, whoever asks.
        async with self._one:
            return await self._render(run, suite, grader)

    async def _render(self, run: EvalRun, suite: EvalSuiteSpec, grader: GraderSeen) -> str:
        uid = run.metadata.uid or ""
        with no_collecting():
            rows = RunRows(self.store, DEFAULT_DATABASE)
            stored = StoredRun(uid, await rows.attempts(uid), rows)
            cells = build_cells(
                run, suite, Observed(ended=stored.attempts, grader=grader), await self._read_grades(uid)
            )
            parts = await read_parts(ShownAttempts.of(stored, cells))
            # Beside the loop, which goes on answering gates.
            return await asyncio.to_thread(_make_page, run, suite, cells, parts)

    async def _read_config(self, run: EvalRun, name: str) -> Mapping[str, str]:
        found = await self.reader.get(CONFIG_MAP, run.metadata.namespace or "", name)
        return (found or {}).get("data") or {}

    async def _read_grades(self, uid: str) -> tuple[GradeRow, ...]:
        store = ResultsStore(self.store, DEFAULT_DATABASE)
        try:
            return await store.grades(uid)
        finally:
            await store.close()


def read_run(body: Mapping[str, Any]) -> EvalRun:
    """Return an EvalRun as the API server has it.

    Raises:
        InvalidInput: it is of another version.
    """
    metadata = body["metadata"]
    try:
        return EvalRun(
            metadata=Metadata(
                name=metadata["name"],
                namespace=metadata["namespace"],
                uid=metadata["uid"],
                generation=metadata.get("generation"),
            ),
            spec=EvalRunSpec.model_validate(body["spec"]),
            status=EvalRunStatus.model_validate(body.get("status") or {}),
        )
    except ValidationError as error:
        where = f"EvalRun {metadata['namespace']}/{metadata['name']}"
        raise InvalidInput(f"{where} is of another version of Proctor") from error


def build_cells(
    run: EvalRun, suite: EvalSuiteSpec, observed: Observed, grades: Iterable[GradeRow]
) -> tuple[dict[str, Any], ...]:
    """Return the run's cells as its page takes them.

    Args:
        run: as the API server has it; it has begun.
        suite: as the run froze it.
        observed: its attempts, and the grades that its verdict rests on.
        grades: marks of the run, by whatever rubric and judge.
    """
    started = run.status.started
    assert started is not None  # noqa: S101 - asked before
    snapshot = RunSnapshot(
        name=run.metadata.name,
        uid=run.metadata.uid or "",
        generation=run.metadata.generation or 0,
        suite=suite,
        suite_digest=digest_suite(suite),
        active_since=started,
        status=run.status,
    )
    # Grades that somebody gave later, by another rubric or judge, are another story: they may be in the store too.
    known = observed.grader.grades
    marks = {
        str(grade.key.cell): _read_payload(grade.payload)
        for grade in grades
        if (mine := known.get(grade.key.cell)) is not None
        and (grade.key.attempt, grade.score) == (mine.attempt, mine.score)
    }
    return render_cells(snapshot, observed, marks)


def _make_page(run: EvalRun, suite: EvalSuiteSpec, cells: Sequence[Mapping[str, Any]], parts: StoredParts) -> str:
    return render_page(add_stored(build_run_facts(run, suite, cells, version=version("proctor")), parts))


def _parse_suite(run: EvalRun, content: Mapping[str, str]) -> EvalSuiteSpec:
    try:
        return EvalSuiteSpec.model_validate_json(content[SUITE_KEY])
    except (KeyError, ValidationError) as error:
        where = f"EvalRun {run.metadata.namespace}/{run.metadata.name}"
        raise InvalidInput(f"{where}: the suite that it was fixed to is gone, or of another version") from error


def _read_payload(payload: str) -> dict[str, Any]:
    values = json.loads(payload)
    return values if isinstance(values, dict) else {}
