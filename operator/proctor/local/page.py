"""A run of this machine → its page: what run.json says, and what the results store has of every cell."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from pathlib import Path

from proctor.bootstrap.run_parts import ShownAttempts, no_collecting, read_parts
from proctor.core.reports.page import FEW_CELLS, ShardPlan, render_page
from proctor.local.durable import write_atomic
from proctor.local.forks import spread_over_forks
from proctor.local.reading import open_stored_run
from proctor.local.rundir import RunDir
from proctor.reconcile.run_page import StoredParts, add_stored, build_run_facts

PAGE_NAME = "report.html"

_SHARDS_AT_ONCE = 64
"""Of some hundred cells: their events, a page or two of the store's, are in memory at a time."""


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
        page = await _make_page(directory, data_dir, clickhouse_url)
        write_atomic(path, page.encode("utf-8", "replace"))
    return path


async def _make_page(directory: RunDir, data_dir: Path, clickhouse_url: str | None) -> str:
    run, cells = directory.read_whole()
    suite = directory.read_suite()
    # What takes no store is done while the store starts and looks for the first rows.
    building = asyncio.create_task(asyncio.to_thread(build_run_facts, run, suite, cells, version=version("proctor")))
    try:
        async with open_stored_run(data_dir, run.metadata.uid or "", clickhouse_url=clickhouse_url) as stored:
            attempts = ShownAttempts.of(stored, cells)
            if len(cells) <= FEW_CELLS:
                parts = await read_parts(attempts)
                return render_page(add_stored(await building, parts))
            tools = await stored.rows.tool_figures(stored.uid)
            facts = add_stored(await building, StoredParts(tools=tools, whole=attempts.chosen))
            packed = await _pack_by_forks(attempts, ShardPlan.of(facts.cells))
    finally:
        await building
    return render_page(facts, packed=packed)


async def _pack_by_forks(attempts: ShownAttempts, plan: ShardPlan) -> list[str]:
    """Return the shards of many cells: each copy of this process reads its cells' events, a stretch at a time."""

    def pack_stretch(start: int) -> list[str]:
        numbers = range(len(plan.shards))[start : start + _SHARDS_AT_ONCE]
        cells = [cell.key for number in numbers for cell in plan.shards[number]]
        trajectories = asyncio.run(attempts.read(cells))
        return [plan.pack(number, trajectories) for number in numbers]

    stretches = await spread_over_forks(pack_stretch, range(0, len(plan.shards), _SHARDS_AT_ONCE))
    return [packed for stretch in stretches for packed in stretch]
