"""An engine's life: start, stop, death, and who finds it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from proctor.errors import Retryable, Terminal
from proctor.local.engine import Access, Engine, EngineLimits, clone_dataset, find_engine
from proctor.local.engine.serve import private_dir
from proctor.local.kept_engine import KeptEngine
from proctor.reconcile.observed import Readiness
from support.engines import SMALL, ask

pytestmark = pytest.mark.engine

OWNER = """
import asyncio, sys
from pathlib import Path
from proctor.local.engine import Engine

async def main():
    async with Engine.start(Path(sys.argv[1]), log=Path(sys.argv[2])) as engine:
        print(engine.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def read(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.exists() else ""


async def ended(pid: int) -> None:
    """Return when a process that is not our child has ended."""
    descriptor = os.pidfd_open(pid)
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, gone.set)
    try:
        await asyncio.wait_for(gone.wait(), 10)
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def test_rows_outlive_a_stop_and_nothing_else_does(tmp_path: Path) -> None:
    """M-D4: data stays; process, address and credentials go."""
    async with Engine.start(tmp_path / "data", log=tmp_path / "log", limits=SMALL) as engine:
        assert ask(engine.endpoint, "CREATE TABLE t (n UInt8) ENGINE = MergeTree ORDER BY n").ok
        assert ask(engine.endpoint, "INSERT INTO t VALUES (7)").ok
        record = private_dir(engine.path) / "engine.json"
        assert record.stat().st_mode & 0o777 == 0o600
        assert private_dir(engine.path).stat().st_mode & 0o777 == 0o700
    assert not record.exists()
    assert not engine.is_running
    assert await find_engine(tmp_path / "data") is None
    async with Engine.start(tmp_path / "data", log=tmp_path / "log", limits=SMALL) as engine:
        assert ask(engine.endpoint, "SELECT n FROM t").text == "7\n"


async def test_passwords_are_in_no_argument_environment_or_log(tmp_path: Path) -> None:
    """S17: another user of the machine, or a reader of logs, learns nothing."""
    async with Engine.start(tmp_path / "data", log=tmp_path / "log", access=Access("ds"), limits=SMALL) as engine:
        assert engine.agent_endpoint
        assert not ask(engine.endpoint, "SELECT nonsense").ok
        secrets = {engine.endpoint.password, engine.agent_endpoint.password}
        process = Path(f"/proc/{engine.pid}")
        places = [read(process / "cmdline"), read(process / "environ"), repr(engine), repr(engine.endpoint)]
    places += [
        read(path) for path in (tmp_path / "log", tmp_path / "log.stderr", private_dir(engine.path) / "users.xml")
    ]
    assert "nonsense" in "".join(places)
    assert not [text for text in places for secret in secrets if secret in text]


async def test_two_engines_started_at_once_do_not_collide(tmp_path: Path) -> None:
    """M-D4: ports are chosen free."""
    async with asyncio.timeout(60):
        async with (
            Engine.start(tmp_path / "a", log=tmp_path / "a.log", limits=SMALL) as first,
            Engine.start(tmp_path / "b", log=tmp_path / "b.log", limits=SMALL) as second,
        ):
            assert len({first.endpoint.port, second.endpoint.port, first.tcp_port, second.tcp_port}) == 4
            assert ask(first.endpoint, "SELECT 1").ok
            assert ask(second.endpoint, "SELECT 1").ok


async def test_a_second_process_finds_the_engine_instead_of_failing_on_its_lock(tmp_path: Path) -> None:
    """M-D4: one engine per folder; whoever may read engine.json shares it."""
    async with Engine.start(tmp_path / "data", log=tmp_path / "log", limits=SMALL) as engine:
        found = await find_engine(tmp_path / "data")
        assert found == engine.endpoint
        with pytest.raises(Terminal, match="another process is serving"):
            await Engine.start(tmp_path / "data", log=tmp_path / "log").__aenter__()
        assert ask(found, "SELECT 1").ok


async def test_a_run_waits_for_those_who_read_its_results_folder(tmp_path: Path) -> None:
    """M-D4: whoever looked at an older run when the next one started would have ended it."""
    kept = KeptEngine(tmp_path / "data", log=tmp_path / "kept.log", notify=lambda: None, limits=SMALL)
    try:
        async with Engine.start(tmp_path / "data", log=tmp_path / "log", limits=SMALL) as reader:
            kept.start()
            await asyncio.sleep(0)
            assert kept.state is Readiness.STARTING
            assert ask(reader.endpoint, "SELECT 1").ok
        assert ask(await kept.ready(), "SELECT 1").ok
    finally:
        await kept.close()


def children() -> set[int]:
    """Return the processes that this one has started."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if f"PPid:\t{os.getpid()}\n" in (entry / "status").read_text():
                found.add(int(entry.name))
    return found


async def test_killed_before_it_is_up_it_may_be_started_again(tmp_path: Path) -> None:
    """P9: that a machine has no memory to spare says nothing of the next try; what keeps an engine, starts it again."""
    before = children()
    starting = asyncio.ensure_future(Engine.start(tmp_path / "data", log=tmp_path / "log", limits=SMALL).__aenter__())
    while not (begun := children() - before):  # noqa: ASYNC110 - nobody sends an event
        await asyncio.sleep(0)
    os.kill(begun.pop(), signal.SIGKILL)
    with pytest.raises(Retryable, match="killed from outside"):
        await starting
    kept = KeptEngine(tmp_path / "data", log=tmp_path / "log", notify=lambda: None, limits=SMALL)
    kept.start()
    try:
        while not (begun := children() - before):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)
        os.kill(begun.pop(), signal.SIGKILL)
        assert ask(await kept.ready(), "SELECT 1").ok
        assert kept.starts == 2
    finally:
        await kept.close()


async def test_a_record_of_a_dead_engine_leads_nowhere(tmp_path: Path) -> None:
    """S17: a password is not sent to whoever has the port now."""
    async with Engine.start(tmp_path / "data", log=tmp_path / "log", limits=SMALL) as engine:
        os.kill(engine.pid, signal.SIGKILL)
        await engine.wait()
        record = json.loads(read(private_dir(engine.path) / "engine.json"))
        assert record["pid"] == engine.pid
        assert await find_engine(tmp_path / "data") is None


async def test_killed_in_the_middle_of_an_insert_it_opens_again(tmp_path: Path) -> None:
    """Faults, ClickHouse killed: what was acknowledged is there, parts are sound, a stale lock is no obstacle."""
    async with Engine.start(tmp_path / "data", log=tmp_path / "log", limits=SMALL) as engine:
        assert ask(engine.endpoint, "CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n").ok
        assert ask(engine.endpoint, "INSERT INTO t SELECT number FROM numbers(100000)").ok
        endless = "INSERT INTO t SELECT number + 1000000 FROM numbers(100000000000) SETTINGS max_block_size = 10000"
        inserting = asyncio.get_running_loop().run_in_executor(None, lambda: ask(engine.endpoint, endless))
        while ask(engine.endpoint, "SELECT count() FROM t").text == "100000\n":  # noqa: ASYNC110 - nobody sends an event
            await asyncio.sleep(0)
        os.kill(engine.pid, signal.SIGKILL)
        with pytest.raises(OSError, match=r".*"):
            await inserting
        await engine.wait()
    assert (tmp_path / "data" / "status").exists()
    async with Engine.start(tmp_path / "data", log=tmp_path / "log", limits=SMALL, again=engine) as again:
        assert again.endpoint == engine.endpoint
        assert ask(again.endpoint, "SELECT count() FROM t WHERE n < 100000").text == "100000\n"
        assert ask(again.endpoint, "CHECK TABLE t SETTINGS check_query_single_value_result = 1").text == "1\n"


async def test_it_dies_with_its_parent(tmp_path: Path) -> None:
    """M-A5: `kill -9` of the process that started it leaves no engine."""
    arguments = (sys.executable, "-c", OWNER, str(tmp_path / "data"), str(tmp_path / "log"))
    owner = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE)
    assert owner.stdout
    pid = int(await owner.stdout.readline())
    assert await find_engine(tmp_path / "data")
    owner.kill()
    await owner.wait()
    await ended_or_gone(pid)
    assert await find_engine(tmp_path / "data") is None
    async with Engine.start(tmp_path / "data", log=tmp_path / "log", limits=SMALL) as engine:
        assert ask(engine.endpoint, "SELECT 1").ok


async def ended_or_gone(pid: int) -> None:
    try:
        await ended(pid)
    except ProcessLookupError:
        return


async def test_an_engine_that_can_not_start_says_why(tmp_path: Path) -> None:
    """Faults: the reason is in the error, not only in a log."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "status").mkdir()  # where its lock file should be
    with pytest.raises(Terminal, match=r"can't start: .*status"):
        await Engine.start(tmp_path / "data", log=tmp_path / "log").__aenter__()


async def test_a_clone_is_served_at_once_and_is_independent(tmp_path: Path) -> None:
    """M-A11: agents get a clone of their dataset; nothing done to it reaches the dataset."""
    async with Engine.start(tmp_path / "data", log=tmp_path / "log", limits=SMALL) as engine:
        for sql in (
            "CREATE DATABASE ds",
            "CREATE TABLE ds.t (n UInt64) ENGINE = MergeTree ORDER BY n",
            "INSERT INTO ds.t SELECT number FROM numbers(1000)",
        ):
            assert ask(engine.endpoint, sql).ok
    clone_dataset(tmp_path / "data", tmp_path / "clone")
    async with (
        Engine.start(tmp_path / "data", log=tmp_path / "log", limits=SMALL) as engine,
        Engine.start(tmp_path / "clone", log=tmp_path / "clone.log", access=Access("ds"), limits=SMALL) as clone,
    ):
        assert clone.agent_endpoint
        assert ask(clone.agent_endpoint, "SELECT count() FROM t").text == "1000\n"
        assert ask(clone.endpoint, "ALTER TABLE ds.t DELETE WHERE n < 500 SETTINGS mutations_sync = 2").ok
        assert ask(clone.endpoint, "OPTIMIZE TABLE ds.t FINAL").ok
        assert ask(clone.endpoint, "DROP TABLE ds.t SYNC").ok
        assert ask(engine.endpoint, "SELECT count(), sum(n) FROM ds.t").text == "1000\t499500\n"
    shutil.rmtree(tmp_path / "clone")


async def test_what_a_clone_shares_stays_shared(tmp_path: Path) -> None:
    """M-A11: an engine that serves a clone merges nothing: its parts stay links, and rows of rollups stay apart.

    Positive control: an engine that may merge these parts does so soon, by itself.
    """
    async with Engine.start(tmp_path / "data", log=tmp_path / "log", limits=SMALL) as engine:
        for sql in (
            "CREATE DATABASE ds",
            "CREATE TABLE ds.t (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS min_age_to_force_merge_seconds = 1",
            "SYSTEM STOP MERGES ds.t",
            *["INSERT INTO ds.t VALUES (1)"] * 20,
        ):
            assert ask(engine.endpoint, sql).ok, sql
    for name in ("clone", "control"):
        clone_dataset(tmp_path / "data", tmp_path / name)
    parts = "SELECT count() FROM system.parts WHERE active AND database = 'ds'"
    async with (
        Engine.start(tmp_path / "clone", log=tmp_path / "1.log", access=Access("ds"), limits=SMALL) as clone,
        Engine.start(tmp_path / "control", log=tmp_path / "2.log", limits=SMALL) as control,
        asyncio.timeout(60),
    ):
        while ask(control.endpoint, parts).text == "20\n":  # noqa: ASYNC110 - nobody sends an event
            await asyncio.sleep(0.05)
        assert ask(clone.endpoint, parts).text == "20\n"
        files = [path for path in (tmp_path / "clone" / "store").rglob("*.bin") if "all_" in str(path)]
        assert len(files) >= 20
        assert all(path.stat().st_nlink >= 2 for path in files)


async def test_memory_is_bounded_by_an_error_not_by_the_kernel(tmp_path: Path) -> None:
    """Issue, figures: an engine stays within what it was given, and says so."""
    limits = EngineLimits(memory_bytes=1 << 30, threads=2)
    async with Engine.start(tmp_path / "data", log=tmp_path / "log", limits=limits) as engine:
        answer = ask(engine.endpoint, "SELECT length(groupArray(number)) FROM numbers(1000000000)")
        assert answer.code == 241
        peak = read(Path(f"/proc/{engine.pid}/status")).partition("VmHWM:")[2].split()[0]
        assert int(peak) * 1024 < limits.memory_bytes * 1.2
        assert ask(engine.endpoint, "SELECT getSetting('max_threads')").text == "2\n"


async def test_no_limit_ends_what_keeps_it_serving(tmp_path: Path) -> None:
    """M-D6: an engine serves for as long as a run lasts; what its own session seems to allocate grows all the while."""
    async with Engine.start(tmp_path / "data", log=tmp_path / "log", limits=SMALL) as engine:
        found = ask(
            engine.endpoint,
            "SELECT Settings['max_memory_usage'], Settings['max_execution_time'] FROM system.processes"
            " WHERE startsWith(query, 'SELECT sleepEachRow')",
        )
    assert found.text == "0\t\n"
