"""Files that are wholly there or not at all."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from pathlib import Path

import pytest

from proctor.api.run import Verdict
from proctor.core.ids import AttemptKey, CellKey
from proctor.errors import DiskFull, InvalidInput, Terminal
from proctor.local.durable import append_line, check_room, write_atomic
from proctor.local.journal import AttemptJournal
from proctor.local.locks import hold_data_dir
from proctor.local.rundir import SUITE_DIGEST_ANNOTATION, create_run, find_resumable, find_run, list_runs
from proctor.local.world import to_fault
from support.runs import NOW, make_suite

CELL = CellKey("error-root-cause", "left", "newest", 1)
KEY = AttemptKey("uid", CELL, 1)


def test_a_full_disk_is_named_as_such() -> None:
    """A full disk: what was being written, and what to do."""
    descriptor = os.open("/dev/full", os.O_WRONLY)
    try:
        with pytest.raises(Terminal, match="appending to journal: the disk is full; free some space") as caught:
            append_line(descriptor, b"{}", Path("journal"))
    finally:
        os.close(descriptor)
    assert to_fault(caught.value).reason == "DiskFull"


def test_a_file_that_can_not_be_replaced_stays_as_it_was(tmp_path: Path) -> None:
    """No half-written file, and no litter beside it."""
    path = tmp_path / "run.json"
    write_atomic(path, b"old")
    (tmp_path / f".run.json.{os.getpid()}.partial").mkdir()
    with pytest.raises(Terminal, match=r"run\.json"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"


def test_a_journal_remembers_starts(tmp_path: Path) -> None:
    """No number is used twice, whoever was killed when (P30)."""
    with AttemptJournal(tmp_path / "attempts.jsonl", "uid") as journal:
        assert journal.read_started() == frozenset()
        journal.note_start(KEY)
    assert AttemptJournal(tmp_path / "attempts.jsonl", "uid").read_started() == {KEY}


def test_a_torn_last_line_of_a_journal_is_no_start(tmp_path: Path) -> None:
    """Its writer died before the door opened."""
    path = tmp_path / "attempts.jsonl"
    with AttemptJournal(path, "uid") as journal:
        journal.note_start(KEY)
    path.write_bytes(path.read_bytes() + b'{"cell": "error-ro')
    assert AttemptJournal(path, "uid").read_started() == {KEY}


def test_what_follows_a_torn_line_is_a_line_of_its_own(tmp_path: Path) -> None:
    """P30: whoever resumes after a kill in the middle of a line can be resumed too."""
    path = tmp_path / "attempts.jsonl"
    path.write_bytes(b'{"cell": "error-ro')
    with AttemptJournal(path, "uid") as journal:
        journal.note_start(KEY)
    with AttemptJournal(path, "uid") as journal:
        assert journal.read_started() == {KEY}


def test_a_line_that_does_not_fit_is_taken_back(tmp_path: Path) -> None:
    """A full disk: half a line would be in the way of the next one."""
    path = tmp_path / "attempts.jsonl"
    with AttemptJournal(path, "uid") as journal:
        journal.note_start(KEY)
        whole = path.read_bytes()
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        # A limit on a file's size ends a write in the middle as a full disk does.
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 5, limit[1]))
        before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            with pytest.raises(Terminal, match=r"attempts\.jsonl"):
                journal.note_start(KEY)
        finally:
            signal.signal(signal.SIGXFSZ, before)
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert path.read_bytes() == whole


def test_too_little_room_is_said_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: which one, how much there is, what to do; a folder that is not there yet is on its parent's."""
    check_room(tmp_path / "not" / "there")
    monkeypatch.setattr("proctor.local.durable.LEAST_FREE_BYTES", 1 << 62)
    with pytest.raises(DiskFull, match=r"data dir .*/there: \d+ MiB are free, .* free some space, then give the same"):
        check_room(tmp_path / "not" / "there")


@pytest.mark.parametrize("line", [b"null\n", b"{}\n", b'{"cell": "x", "attempt": 1}\n', b"\xff\n"])
def test_a_damaged_journal_is_an_error(tmp_path: Path, line: bytes) -> None:
    """Never silently less than what was started."""
    path = tmp_path / "attempts.jsonl"
    path.write_bytes(line)
    with pytest.raises(Terminal, match=r"attempts\.jsonl"):
        AttemptJournal(path, "uid").read_started()


def test_the_newest_pending_run_of_a_suite_is_resumed(tmp_path: Path) -> None:
    """manifest: the same digest resumes; another one, or a finished run, does not."""
    suite = make_suite()
    directory, run = create_run(
        tmp_path, suite_name="quick", suite=suite, annotations={SUITE_DIGEST_ANNOTATION: "aa"}, now=NOW
    )
    assert find_resumable(tmp_path, "bb") is None
    found = find_resumable(tmp_path, "aa")
    assert found is not None
    assert found[1].metadata.uid == run.metadata.uid
    assert directory.read_suite() == suite
    done = run.model_copy(update={"status": run.status.model_copy(update={"verdict": Verdict.PASS})})
    directory.write_run(done, [])
    assert find_resumable(tmp_path, "aa") is None


def test_names_of_runs_may_be_cut(tmp_path: Path) -> None:
    """A prefix, or `last`; a name that fits several is refused."""
    suite = make_suite()
    first, _ = create_run(
        tmp_path, suite_name="a" * 50, suite=suite, annotations={SUITE_DIGEST_ANNOTATION: "aa"}, now=NOW
    )
    second, _ = create_run(tmp_path, suite_name="bb", suite=suite, annotations={SUITE_DIGEST_ANNOTATION: "aa"}, now=NOW)
    os.utime(first.suite_file, ns=(1, 1))
    assert len(first.name) <= 50
    assert find_run(tmp_path, "last").name == second.name
    assert find_run(tmp_path, "a").name == first.name
    with pytest.raises(InvalidInput, match="none"):
        find_run(tmp_path, "c")
    with pytest.raises(InvalidInput, match="may be"):
        find_run(tmp_path, "")
    assert [directory.name for directory in list_runs(tmp_path)] == [second.name, first.name]


async def test_a_second_run_waits_for_the_first(tmp_path: Path) -> None:
    """Two at once queue, and the second says for whom."""
    told: list[str] = []
    stop = asyncio.Event()
    waiting = asyncio.Event()

    def note(holder: str) -> None:
        told.append(holder)
        waiting.set()

    async def second() -> bool:
        async with hold_data_dir(tmp_path, "second", note, stop) as is_held:
            return is_held

    async with hold_data_dir(tmp_path, "first", told.append, stop) as is_held:
        assert is_held
        task = asyncio.create_task(second())
        await waiting.wait()
    assert await task
    assert told == ["first"]


async def test_waiting_can_be_stopped(tmp_path: Path) -> None:
    """Ctrl-C while in line: nothing was begun."""
    stop = asyncio.Event()
    async with (
        hold_data_dir(tmp_path, "first", lambda _: None, asyncio.Event()),
        hold_data_dir(tmp_path, "second", lambda _: stop.set(), stop) as is_held,
    ):
        assert not is_held
