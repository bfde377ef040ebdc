"""Nothing outlives whoever started it (M-A5, S25, S31): tried with a starter that is killed without a word."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from proctor.adapters.sandbox.processes import list_descendants
from proctor.adapters.sandbox.sandboxed import launch
from proctor.adapters.sandbox.serverprocess import launch_server
from support.sandbox import Role, build_spec, needs_sandbox

pytestmark = needs_sandbox

_DAEMON = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        time.sleep(600)
    os._exit(0)
os.wait()
os.write(1, b"started")
{then}
"""
"""A daemon of the old school: new session, deaf to signals, own streams, parents gone."""

_STARTER = """
import asyncio, os, sys
from dataclasses import replace
from pathlib import Path
from proctor.adapters.sandbox.sandboxed import launch
from proctor.adapters.sandbox.serverprocess import launch_server
from support.sandbox import Role, build_spec

async def main():
    code, socket = sys.argv[1], Path(sys.argv[2])
    agent = await launch(build_spec(Role.AGENT, code, socket))
    server = await launch_server(build_spec(Role.SERVER, code, socket))
    print(os.getpid(), flush=True)
    await server.reader.read(7)
    print("started", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_kill_9_of_the_starter_leaves_nothing(socket: Path) -> None:
    """M-A5, S31: agents and servers, with daemons that ignore every signal, are gone when their starter is killed."""
    code = _DAEMON.format(then="time.sleep(600)")
    tests = Path(__file__).parents[2]
    starter = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", _STARTER, code, str(socket)),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tests), str(tests.parent / "operator")))},
    )
    assert starter.stdout is not None
    assert await starter.stdout.readline()
    assert await starter.stdout.readline() == b"started\n"
    inside = [os.pidfd_open(pid) for pid in list_descendants(starter.pid)]
    assert len(inside) >= 8  # two of bubblewrap, a command and a daemon, twice
    starter.kill()
    await starter.wait()
    await asyncio.gather(*(_ended(one) for one in inside))


@pytest.mark.parametrize("after", [0.0, 0.001, 0.002, 0.004, 0.006, 0.01, 0.02])
async def test_kill_9_in_the_middle_of_a_start_leaves_nothing(socket: Path, after: float) -> None:
    """M-A5: whenever in a start its starter is killed, what was made of the sandbox ends by itself."""
    code = _STARTER.replace("async def main():", "async def main():\n    print('ready', flush=True)", 1)
    tests = Path(__file__).parents[2]
    starter = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", code, "import time; time.sleep(600)", str(socket)),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tests), str(tests.parent / "operator")))},
    )
    assert starter.stdout is not None
    assert await starter.stdout.readline() == b"ready\n"
    await asyncio.sleep(after)  # the instant of the kill is what is varied, not something waited for
    os.kill(starter.pid, signal.SIGSTOP)
    inside = [os.pidfd_open(pid) for pid in list_descendants(starter.pid)]
    starter.kill()
    await starter.wait()
    await asyncio.gather(*(_ended(one) for one in inside))


async def test_a_daemon_does_not_outlive_its_agent(socket: Path) -> None:
    """M-A5, P25: the end of an agent's command is the end of all that it has started."""
    sandboxed = await launch(build_spec(Role.AGENT, _DAEMON.format(then="sys.exit(4)"), socket))
    ended = await sandboxed.wait()
    assert (ended.exit_code, ended.message) == (4, "started")
    assert _left(b"old school") == []
    assert _left(b"os.setsid()") == []


async def test_a_daemon_does_not_outlive_its_server(socket: Path) -> None:
    """M-A5: nor does it after a server was told to end; telling it twice does no harm."""
    server = await launch_server(build_spec(Role.SERVER, _DAEMON.format(then="time.sleep(600)"), socket), grace=0.3)
    assert await server.reader.readexactly(7) == b"started"
    assert server.exit_code() is None
    await asyncio.gather(server.terminate(), server.terminate())
    await server.terminate()
    assert server.exit_code() is not None
    assert _left(b"os.setsid()") == []


async def test_ending_while_it_starts_and_after_it_ended(socket: Path) -> None:
    """Ending has one outcome, whenever it is asked for."""
    spec = build_spec(Role.AGENT, "print('done')", socket)
    sandboxed = await launch(replace(spec))
    first, second = await asyncio.gather(sandboxed.terminate(), sandboxed.terminate())
    assert first == second == await sandboxed.terminate()
    ended = await launch(spec)
    said = await ended.wait()
    assert said == await ended.terminate()
    assert json.dumps(said.message) == '"done"'


async def _ended(pidfd: int) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    loop.add_reader(pidfd, over.set)
    try:
        async with asyncio.timeout(20):
            await over.wait()
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)


def _left(code: bytes) -> list[int]:
    found = []
    for pid in list_descendants(os.getpid()):
        try:
            if code in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found
