"""manifest, stopping and resuming on one machine: which run goes on, which is new, and what cancelling leaves."""

from __future__ import annotations

import asyncio
import socket
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from proctor.api.run import CellCounts, EvalRun, Verdict
from proctor.api.suite import EvalSuite
from proctor.errors import InvalidInput
from proctor.local.cancelling import cancel_run
from proctor.local.locks import hold_data_dir
from proctor.local.request import RunRequest
from proctor.local.rundir import RunDir, find_resumable
from proctor.local.session import _find_or_create
from proctor.local.store_choice import check_store
from support.runs import NOW, make_suite


class Quiet:
    """A view that remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def say(self, line: str) -> None:
        self.told.append(line)


def ask(
    data_dir: Path, *, new: bool = False, clickhouse_url: str | None = None, **changes: Any
) -> tuple[RunDir, EvalRun, str]:
    """Ask for a run of a suite, as `proctor run` does once the data dir is its own."""
    suite = EvalSuite.model_validate(
        {
            "apiVersion": "proctor.dev/v1alpha1",
            "kind": "EvalSuite",
            "metadata": {"name": "quick"},
            "spec": make_suite(**changes).to_file(),
        }
    )
    view = Quiet()
    directory, run = _find_or_create(
        RunRequest(suite=suite, data_dir=data_dir, scenarios_dirs=(), new=new, clickhouse_url=clickhouse_url),
        view,  # type: ignore[arg-type]
    )
    return directory, run, view.told[0]


def interrupt(directory: RunDir, run: EvalRun) -> None:
    """What an executor leaves that was killed: some cells graded, some running, some not begun."""
    states = ["graded", "graded", "ungraded", "infra_errored", "running", "pending", "pending"]
    cells = [{"cell": f"one/left/newest/{number}", "state": state} for number, state in enumerate(states, 1)]
    counts = CellCounts(total=7, graded=2, ungraded=1, infra_errored=1, running=1, pending=2)
    status = run.status.model_copy(update={"cells": counts, "started": NOW})
    directory.write_run(run.model_copy(update={"status": status}), cells)


def test_the_same_suite_resumes_and_another_starts(tmp_path: Path) -> None:
    """The same digest goes on with the Pending run; whatever changes the suite makes a run of its own."""
    first, run, told = ask(tmp_path)
    assert told == f"run {first.name}"
    again, same, told = ask(tmp_path)
    assert (again.name, same.metadata.uid, told) == (first.name, run.metadata.uid, f"resuming run {first.name}")
    other, _, _ = ask(tmp_path, replicates=4)
    assert other.name != first.name
    assert ask(tmp_path)[0].name == first.name


def test_new_always_starts(tmp_path: Path) -> None:
    """`--new` leaves the Pending run alone, and the newest Pending one is what goes on afterwards."""
    first, _, _ = ask(tmp_path)
    second, _, told = ask(tmp_path, new=True)
    assert (second.name != first.name, told) == (True, f"run {second.name}")
    assert first.read_run().status.verdict is Verdict.PENDING
    assert ask(tmp_path)[0].name == second.name


def test_an_ended_run_is_never_resumed(tmp_path: Path) -> None:
    """Finished cells are never repeated, nor is a verdict changed: an ended run stays, and an older one goes on."""
    first, _, _ = ask(tmp_path)
    second, run, _ = ask(tmp_path, new=True)
    ended = run.status.model_copy(update={"verdict": Verdict.PASS, "ended": NOW + timedelta(minutes=1)})
    second.write_run(run.model_copy(update={"status": ended}), [])
    assert ask(tmp_path)[0].name == first.name


def test_cancelling_a_killed_run_keeps_what_it_has(tmp_path: Path) -> None:
    """`proctor cancel` of a run that nobody is at work on: Cancelled, grades kept, every cell counted once."""
    directory, run, _ = ask(tmp_path)
    interrupt(directory, run)
    assert cancel_run(tmp_path, directory.name) == f"run {directory.name} is Cancelled"
    after, cells = directory.read_whole()
    assert (after.status.verdict, after.status.reason) == (Verdict.CANCELLED, "CancelRequested")
    counts = after.status.cells
    assert (counts.graded, counts.ungraded, counts.infra_errored, counts.cancelled) == (2, 1, 1, 3)
    assert (counts.running, counts.pending, counts.total) == (0, 0, 7)
    states = [cell["state"] for cell in cells]
    assert states == ["graded", "graded", "ungraded", "infra_errored", "cancelled", "cancelled", "cancelled"]
    assert after.status.ended is not None


def test_a_cancelled_run_is_not_resumed(tmp_path: Path) -> None:
    """The same command starts anew, and cancelling again changes nothing."""
    directory, run, _ = ask(tmp_path)
    interrupt(directory, run)
    cancel_run(tmp_path, "last")
    before = directory.run_file.read_bytes()
    assert "has ended already: Cancelled" in cancel_run(tmp_path, directory.name)
    assert directory.run_file.read_bytes() == before
    assert ask(tmp_path)[0].name != directory.name


async def test_cancelling_a_run_that_goes_on_is_its_executors_work(tmp_path: Path) -> None:
    """P41: two writers never write one run.json: whoever holds the data dir is asked, and ends the run itself."""
    directory, run, _ = ask(tmp_path)
    interrupt(directory, run)
    before = directory.run_file.read_bytes()
    async with hold_data_dir(tmp_path, directory.name, lambda _: None, asyncio.Event()) as is_held:
        assert is_held
        assert "is asked to end" in cancel_run(tmp_path, directory.name)
    assert directory.cancel_request.exists()
    assert directory.run_file.read_bytes() == before


async def test_cancelling_while_another_run_is_at_work(tmp_path: Path) -> None:
    """A Pending run is cancelled at once while the data dir is another's."""
    directory, _, _ = ask(tmp_path)
    async with hold_data_dir(tmp_path, "other-run", lambda _: None, asyncio.Event()):
        assert cancel_run(tmp_path, directory.name) == f"run {directory.name} is Cancelled"


def test_cancelling_what_is_not_there(tmp_path: Path) -> None:
    """Bad usage is told, and nothing is made."""
    with pytest.raises(InvalidInput, match="there is none"):
        cancel_run(tmp_path, "no-such-run")
    assert find_resumable(tmp_path / "runs", "aa") is None


HERE, THERE = "http://operator:secret@127.0.0.1:8123/default", "http://operator:secret@127.0.0.1:9123/default"


@pytest.mark.parametrize(("first", "then"), [(None, HERE), (HERE, None), (HERE, THERE)])
def test_a_run_does_not_go_on_where_its_results_are_not(tmp_path: Path, first: str | None, then: str | None) -> None:
    """manifest, resuming: finished cells are recorded in one store; the run is left as it was, and no password told."""
    directory, run, _ = ask(tmp_path, clickhouse_url=first)
    interrupt(directory, run)
    left = directory.run_file.read_bytes()
    with pytest.raises(InvalidInput, match="keeps its results in") as refused:
        ask(tmp_path, clickhouse_url=then)
    assert "secret" not in str(refused.value)
    assert directory.run_file.read_bytes() == left
    assert ask(tmp_path, clickhouse_url=first)[0] == directory
    assert ask(tmp_path, clickhouse_url=then, new=True)[0] != directory


async def test_a_store_that_is_not_there_is_told_before_a_run_is_made() -> None:
    """M-D6: whatever a run would fail on after its beginning is tried before."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: whoever connects is refused
        with pytest.raises(InvalidInput, match="nothing was started"):
            await check_store(f"http://operator:secret@127.0.0.1:{taken.getsockname()[1]}/default")
