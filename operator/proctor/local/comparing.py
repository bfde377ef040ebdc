"""Two runs of this machine → their comparison.

Their files are read as they stand: loading the types of a suite would take a fifth of what the whole command may.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.core.reports.run_cells import read_marks, read_observation
from proctor.core.reports.run_comparison import ComparedCell, RunComparison, RunSide, compare
from proctor.core.reports.run_inputs import RunInputs
from proctor.errors import InvalidInput, Terminal
from proctor.local.reading import read_tools
from proctor.local.rundir import RunDir

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
    try:
        sides = _read_side(before), _read_side(after)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        names = f"{before.name} and {after.name}"
        raise Terminal(f"comparing {names}: one of them is not a run that this version writes") from error
    return compare(*sides, seed=_SEED)


def _read_side(directory: RunDir) -> RunSide:
    run, cells = directory.read_raw()
    suite = directory.read_raw_suite()
    status = run.get("status") or {}
    digests = status.get("digests") or {}
    read = (ComparedCell(observation=read_observation(cell), marks=read_marks(cell)) for cell in cells)
    return RunSide(
        name=directory.name,
        verdict=str(status.get("verdict", "")),
        reason=str(status.get("reason", "")),
        inputs=RunInputs(
            suite=suite,
            datasets=digests.get("datasets") or {},
            rubric=digests.get("rubric") or "",
            judge=digests.get("judge") or "",
            tools=digests.get("tools") or {},
        ),
        cells=tuple(cell for cell in read if cell.observation.cell.control is None),
        scripted=_find_scripted(suite),
    )


def _find_scripted(suite: Mapping[str, Any]) -> frozenset[str]:
    """Return the models whose scores have no chance in them: scripted ones, unless a judge's model grades them."""
    if "anthropic" in suite.get("judge", {}):
        return frozenset()
    return frozenset(model["name"] for model in suite.get("models", []) if "scripted" in model)
