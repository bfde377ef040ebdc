"""A run of this machine → its page: what run.json says, and what the results store has of every cell."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from pathlib import Path

from proctor.bootstrap.run_parts import choose_cells, no_collecting, read_parts
from proctor.core.reports.page import RunFacts, render_page
from proctor.local.durable import write_atomic
from proctor.local.forks import spread_over_forks
from proctor.local.reading import open_stored_run
from proctor.local.rundir import RunDir
from proctor.reconcile.run_page import add_stored, build_run_facts

PAGE_NAME = "report.html"


async def write_page(
    directory: RunDir, data_dir: Path, *, clickhouse_url: str | None = None, output: Path | None = None
) -> Path:
    """Write a run's page, in one step, and return where.

    Args:
        directory: the run's folder.
        data_dir: whose results engine is asked; started for the purpose if it doesn't run.
        clickhouse_url: where results are instead.
        output: the file; beside run.json if left out.

    Raises:
        InvalidInput: this data dir has no results.
        Retryable: the store does not answer.
        Terminal: the run or the store can't be read, or the file can't be written.
    """
    path = output or directory.path / PAGE_NAME
    with no_collecting():
        facts = await read_facts(directory, data_dir, clickhouse_url=clickhouse_url)
        write_atomic(path, render_page(facts, spread=spread_over_forks).encode("utf-8", "replace"))
    return path


async def read_facts(directory: RunDir, data_dir: Path, *, clickhouse_url: str | None = None) -> RunFacts:
    """Return what a run's page shows; arguments and errors as for `write_page`."""
    run, cells = directory.read_whole()
    suite = directory.read_suite()
    # What takes no store is done while the store starts and looks for the first rows.
    building = asyncio.create_task(asyncio.to_thread(build_run_facts, run, suite, cells, version=version("proctor")))
    try:
        async with open_stored_run(data_dir, run.metadata.uid or "", clickhouse_url=clickhouse_url) as stored:
            parts = await read_parts(stored, choose_cells(cells))
    finally:
        facts = await building
    return add_stored(facts, parts)
