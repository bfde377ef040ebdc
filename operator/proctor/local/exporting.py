"""A run of this machine in other programs' formats, line by line: a few megabytes are in memory, whatever its size."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import assert_never

from proctor.api.suite import EvalSuiteSpec
from proctor.bootstrap.stored_run import StoredRun
from proctor.core.export.cells import render_cell_row, render_header
from proctor.core.export.events import build_event_json
from proctor.core.export.formats import Format, Subject
from proctor.core.export.spans import RunResource, build_trace_request
from proctor.errors import InvalidInput
from proctor.local.reading import open_stored_run
from proctor.local.rundir import RunDir


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSource:
    """Where an export is read from.

    Attributes:
        directory: the run's folder.
        data_dir: whose results engine is asked, where a line needs more than run.json has.
        clickhouse_url: where results are instead.
    """

    directory: RunDir
    data_dir: Path
    clickhouse_url: str | None = None

    def open_stored(self, uid: str) -> AbstractAsyncContextManager[StoredRun]:
        """Open what the store holds of the run."""
        return open_stored_run(self.data_dir, uid, clickhouse_url=self.clickhouse_url)


async def export_run(source: ExportSource, form: Format, subject: Subject, write: Callable[[str], object]) -> None:
    """Write a run line by line.

    Args:
        source: the run.
        form: the format.
        subject: what a line of JSON is; a table is of cells, and spans are per attempt.
        write: takes each line, without its end.

    Raises:
        InvalidInput: the format has no such lines, or this data dir has no results.
        Retryable: the store does not answer.
        Terminal: the run or the store can't be read.
    """
    if form is not Format.JSONL and subject is not Subject.CELLS:
        raise InvalidInput(f"--of {subject}: only --format {Format.JSONL} has such lines")
    match form:
        case Format.JSONL if subject is Subject.EVENTS:
            await _write_events(source, write)
        case Format.JSONL:
            for cell in source.directory.read_cells():
                write(_dump({"run": source.directory.name, **cell}))
        case Format.CSV:
            write(render_header())
            for cell in source.directory.read_cells():
                write(render_cell_row(source.directory.name, cell))
        case Format.OTLP:
            await _write_spans(source, write)
        case _:
            assert_never(form)


async def _write_events(source: ExportSource, write: Callable[[str], object]) -> None:
    async with source.open_stored(source.directory.read_run().metadata.uid or "") as stored:
        async for record, events in stored.trajectories(stored.attempts):
            for event in events:
                write(_dump(build_event_json(record.key, event)))


async def _write_spans(source: ExportSource, write: Callable[[str], object]) -> None:
    run, cells = source.directory.read_whole()
    suite = source.directory.read_suite()
    resource = RunResource(
        run=source.directory.name,
        uid=run.metadata.uid or "",
        suite=run.spec.suite_ref.name,
        version=version("proctor"),
        agent=suite.agent.runtime.value,
        providers=_name_providers(suite),
    )
    counting = {(cell["cell"], cell.get("attempt")): cell for cell in cells}
    async with source.open_stored(resource.uid) as stored:
        async for record, events in stored.trajectories(stored.attempts):
            cell = counting.get((str(record.key.cell), record.key.attempt))
            write(_dump(build_trace_request(resource, record, events, cell)))


def _name_providers(suite: EvalSuiteSpec) -> dict[str, str]:
    return {model.name: "anthropic" if model.anthropic is not None else "proctor" for model in suite.models}


def _dump(value: object) -> str:
    # Names may hold lone surrogates, which no file of UTF-8 can: escaped they come through.
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
