"""Two runs of this machine → their comparison."""

from __future__ import annotations

import asyncio
from pathlib import Path

from proctor.api.suite import EvalSuiteSpec
from proctor.core.reports.run_comparison import ComparedCell, RunComparison, RunSide, compare, read_marks
from proctor.core.reports.run_inputs import RunInputs
from proctor.errors import InvalidInput
from proctor.local.reading import read_tools
from proctor.local.rundir import RunDir
from proctor.reconcile.result import read_observation
from proctor.reconcile.rules import scripted_models

_SEED = 0
"""Of resampling: the same two runs always give the same intervals."""


async def compare_stored(
    before: RunDir, after: RunDir, data_dir: Path, *, clickhouse_url: str | None = None
) -> RunComparison:
    """Compare two runs.

    Args:
        before: the first.
        after: the second.
        data_dir: whose results engine is asked; started for the purpose if it doesn't run.
        clickhouse_url: where results are instead.

    Raises:
        Retryable: the store does not answer.
        Terminal: a run or the store can't be read.
    """
    uids = [one.read_head().get("metadata", {}).get("uid", "") for one in (before, after)]
    # The engine starts while files are read and intervals are made.
    tools = asyncio.create_task(read_tools(data_dir, uids, clickhouse_url=clickhouse_url))
    try:
        compared = await asyncio.to_thread(_compare_files, before, after)
    except BaseException:
        tools.cancel()
        raise
    try:
        left, right = await tools
    except InvalidInput as error:
        return compared.with_note(f"tools are not compared: {error}")
    return compared.with_tools(left, right)


def _compare_files(before: RunDir, after: RunDir) -> RunComparison:
    return compare(_read_side(before), _read_side(after), seed=_SEED)


def _read_side(directory: RunDir) -> RunSide:
    run, cells = directory.read_whole()
    suite: EvalSuiteSpec = directory.read_suite()
    digests = run.status.digests
    read = (ComparedCell(observation=read_observation(cell), marks=read_marks(cell)) for cell in cells)
    return RunSide(
        name=directory.name,
        verdict=run.status.verdict.value,
        reason=run.status.reason,
        inputs=RunInputs(
            suite=suite.to_file(),
            datasets=digests.datasets,
            rubric=digests.rubric or "",
            judge=digests.judge or "",
            tools=digests.tools,
        ),
        cells=tuple(cell for cell in read if cell.observation.cell.control is None),
        scripted=scripted_models(suite),
    )
