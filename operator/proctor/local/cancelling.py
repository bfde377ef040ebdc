"""Cancelling a run, whether an executor is at work on it or not."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from proctor.api.run import CellCounts, EvalRun, Phase, Verdict
from proctor.clock import utc_now
from proctor.local.durable import translate_os_error, write_atomic
from proctor.local.rundir import find_run


def cancel_run(data_dir: Path, name: str) -> str:
    """Cancel a run; return what was done, for people.

    Raises:
        InvalidInput: there is no such run.
        Terminal: its files can't be read or written.
    """
    directory = find_run(data_dir / "runs", name)
    run = directory.read_run()
    if run.status.terminal:
        return f"run {directory.name} has ended already: {run.status.verdict}"
    write_atomic(directory.cancel_request, b"")
    if not _lock_is_free(data_dir):
        # Whoever holds the lock may be at work on this very run, and sees the request within a second.
        return f"run {directory.name} is asked to end; its executor ends its cells and makes it Cancelled"
    directory.write_run(_cancelled(run), directory.read_cells())
    return f"run {directory.name} is Cancelled"


def _cancelled(run: EvalRun) -> EvalRun:
    cells = run.status.cells
    counts = CellCounts(
        total=cells.total,
        graded=cells.graded,
        ungraded=cells.ungraded,
        infra_errored=cells.infra_errored,
        cancelled=cells.cancelled + cells.running + cells.pending,
    )
    status = run.status.model_copy(
        update={
            "verdict": Verdict.CANCELLED,
            "reason": "CancelRequested",
            "summary": "cancelled by request; grades and trajectories are kept",
            "phase": Phase.COMPLETE,
            "observed_generation": run.metadata.generation or 1,
            "ended": utc_now(),
            "cells": counts,
        }
    )
    return run.model_copy(update={"status": status})


def _lock_is_free(data_dir: Path) -> bool:
    path = data_dir / "lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as e:
        raise translate_os_error(e, f"opening {path}") from e
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)
