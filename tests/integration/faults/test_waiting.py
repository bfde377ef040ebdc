"""The tests' own bounds: what waits for ever fails by its name, and adopted processes don't pile up."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.local_runs import adopt_orphans, reap_orphans

pytest_plugins = ["pytester"]

_CONFTEST = Path(__file__).parents[1] / "conftest.py"
_ORPHAN = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'input()'], stdin=0).pid, flush=True)"


def test_a_test_that_waits_for_ever_fails_and_says_where(pytester: pytest.Pytester) -> None:
    """Faults: a hang is one failed test, not the end of all."""
    conftest = _CONFTEST.read_text().replace("_SECONDS = 240", "_SECONDS = 0.05")
    pytester.makeconftest(conftest)
    pytester.makepyfile(
        """
        import asyncio

        async def test_waits():
            await asyncio.Event().wait()

        async def test_does_not():
            await asyncio.sleep(0)
        """
    )
    options = {"asyncio_mode": "auto", "asyncio_default_fixture_loop_scope": "function"}
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    outcome = pytester.runpytest_inprocess(*words, "-p", "no:cacheprovider")
    outcome.assert_outcomes(failed=1, passed=1)
    outcome.stdout.fnmatch_lines(["*it still waits after 0.05 s*"])


def _is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_adopted_processes_are_reaped_and_asyncios_own_are_not() -> None:
    """Faults: `kill -9` leaves orphans to whoever adopts; a process that asyncio waits for keeps its exit code."""
    adopt_orphans()
    own = await asyncio.create_subprocess_exec(sys.executable, "-c", "import sys; sys.exit(7)")
    parent = subprocess.run([sys.executable, "-c", _ORPHAN], stdout=subprocess.PIPE, input=b"", check=True)  # noqa: ASYNC221 - what is tried
    orphan = int(parent.stdout)
    ended: frozenset[int] = frozenset()
    limit = time.monotonic() + 20
    while _is_there(orphan) and time.monotonic() < limit:
        ended = reap_orphans(ended)
        await asyncio.sleep(0.05)
    assert not _is_there(orphan)
    assert await own.wait() == 7
