"""What one sandbox may use, and that using it up hurts nobody else (S23, S24, S25, P7, P8, P25)."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from proctor.adapters.sandbox.processes import list_descendants
from proctor.adapters.sandbox.sandboxed import launch
from proctor.adapters.sandbox.serverprocess import launch_server
from proctor.adapters.sandbox.spec import MIB, Isolation, Limits, SandboxSpec
from proctor.core.trajectory.outcome import ExitCause
from support.sandbox import (
    ATTACKER,
    ROLES,
    Role,
    attack,
    attack_outside,
    build_spec,
    needs_sandbox,
)

pytestmark = needs_sandbox

_SMALL = Limits(
    memory_bytes=96 * MIB,
    processes=24,
    scratch_bytes=8 * MIB,
    files=3000,
    file_bytes=4 * MIB,
    open_files=64,
    open_files_in_all=500,
)

_EXCESSES = {
    "memory": (
        """
held = []
for number in range(300 if MUCH else 3):
    held.append(bytearray(4_000_000))
    for page in range(0, 4_000_000, 4096):
        held[-1][page] = 1
""",
        "bytes of memory",
    ),
    "memory-of-many-processes": (
        """
for number in range(10 if MUCH else 1):
    if os.fork() == 0:
        held = b"x" * 20_000_000
        time.sleep(60 if MUCH else 0)
        os._exit(0)
time.sleep(60 if MUCH else 0)
""",
        "bytes of memory",
    ),
    "tables-of-memory": (
        """
import ctypes
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
size = (2000 if MUCH else 10) << 30
start = libc.mmap(None, size, 1, 0x4022, -1, 0)  # to be read only: what is read there is one page, the same everywhere
for place in range(start, start + size, 2 << 20):
    ctypes.c_char.from_address(place).value
""",
        "bytes of memory",
    ),
    "empty-files": (
        """
for number in range(200_000 if MUCH else 100):
    os.close(os.open(f"/dev/shm/{number}", os.O_CREAT))
time.sleep(60 if MUCH else 0)
""",
        "more than 3000 files",
    ),
    "open-files-of-many-processes": (
        """
import socket
for number in range(12 if MUCH else 1):
    if os.fork() == 0:
        held = [socket.socketpair() for _ in range(25)]
        time.sleep(60 if MUCH else 0)
        os._exit(0)
time.sleep(60 if MUCH else 0)
""",
        "files open",
    ),
}
"""What is taken too much of, where MUCH is true, and what is said of it; else it is little, and all is well."""


def _agent(code: str, socket: Path, limits: Limits = _SMALL, **variables: str) -> SandboxSpec:
    return replace(build_spec(Role.AGENT, code, socket, variables=variables), limits=limits)


async def _run(role: Role, code: str, socket: Path) -> tuple[ExitCause | None, int | None, str]:
    """Run an attacker as its role is run; return cause, exit code, and what is told of its end."""
    spec = replace(build_spec(role, code, socket), limits=_SMALL)
    if role is not Role.SERVER:
        ended = await (await launch(spec, deadline=50)).wait()
        return ended.cause, ended.exit_code, ended.message
    server = await launch_server(spec)
    await server.reader.read()
    await server.terminate()
    return None, server.exit_code(), server.log_tail()


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", _EXCESSES)
async def test_s23_whoever_takes_too_much_is_ended_and_told_what_of(name: str, role: Role, socket: Path) -> None:
    """S23, P7: its own limit is the cause and in the message; infrastructure is not blamed."""
    code, words = _EXCESSES[name]
    cause, exit_code, message = await _run(role, f"import os, time\nMUCH = True\n{code}", socket)
    assert words in message
    assert exit_code != 0
    assert cause in {None, ExitCause.MEMORY if "memory" in name else ExitCause.EXCESS}


@pytest.mark.parametrize("name", _EXCESSES)
async def test_s23_whoever_takes_little_of_the_same_is_not(name: str, socket: Path) -> None:
    """S23, positive control: each of these programs runs to its end where it keeps to the limits."""
    code = f"import os, time\nMUCH = False\n{_EXCESSES[name][0]}\nprint('done')"
    assert await _run(Role.AGENT, code, socket) == (ExitCause.EXITED, 0, "done")


async def test_s23_one_huge_request_fails_inside(socket: Path) -> None:
    """S23: a single request above the limit is refused by the kernel, before any of it exists."""
    ended = await (await launch(_agent("b'x' * 2_000_000_000", socket))).wait()
    assert (ended.cause, ended.exit_code) == (ExitCause.EXITED, 1)
    assert "MemoryError" in ended.message


async def test_s23_what_waits_in_sockets_is_bounded(socket: Path) -> None:
    """S23: a larger buffer can be asked for, and is not got: what waits in sockets is no process's memory."""
    code = """
import socket
one, other = socket.socketpair()
before = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
print(before == one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF))
"""
    assert await _run(Role.AGENT, code, socket) == (ExitCause.EXITED, 0, "True")


@pytest.mark.parametrize("role", ROLES)
async def test_s23_scratch_shared_memory_and_descriptors_end(role: Role, socket: Path) -> None:
    """S23: what can be written is bounded, file by file and as a whole; so are descriptors; nothing is dumped."""
    orders = {
        "fill_scratch": {"folders": ["/tmp", "/dev/shm"], "most": 64 * MIB},
        "open_many": {"most": 1000},
    }
    report = await attack(role, orders, socket, limits=_SMALL)
    for folder, filled in report["fill_scratch"].items():
        assert filled["reason"] == "ENOSPC", folder
        assert 4 * MIB < filled["written"] <= 8 * MIB
        assert filled["files"] >= 2
    assert report["open_many"] == {"count": report["open_many"]["count"], "reason": "EMFILE"}
    assert report["open_many"]["count"] < 64


@pytest.mark.parametrize("role", ROLES)
async def test_s24_a_fork_bomb_is_stopped_and_starves_nobody(role: Role, socket: Path) -> None:
    """S24: counts are by sandbox: while one is at its limit, another and this machine start what they like."""
    bomb = {"fork_until_refused": {"most": 1000, "seconds": 60}}
    spec = build_spec(Role.AGENT, ATTACKER + "\n    import time; time.sleep(60)", socket)
    spec = replace(spec, limits=_SMALL, environment={**spec.environment, "ATTACK": json.dumps(bomb)})
    first = await launch(spec, grace=0.1)
    try:
        report = await attack(role, {"fork_until_refused": {"most": 15, "seconds": 1}}, socket, limits=_SMALL)
        assert report["fork_until_refused"] == {"count": 15, "reason": "none"}
        outside = await attack_outside({"fork_until_refused": {"most": 50, "seconds": 1}})
        assert outside["fork_until_refused"]["count"] == 50
    finally:
        ended = await first.terminate()
    told = json.loads(ended.message)["fork_until_refused"]
    assert told["reason"] == "EAGAIN"
    assert 15 < told["count"] < 24


async def test_s24_processes_that_multiply_for_ever_are_ended_whole(socket: Path) -> None:
    """S24, S25: a real fork bomb, whose processes each start others, is gone after its deadline, down to the last."""
    code = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
    sandboxed = await launch(_agent(code, socket), deadline=1.5, grace=0.2)
    ended = await sandboxed.wait()
    assert ended.cause is ExitCause.DEADLINE
    assert [pid for pid in list_descendants(os.getpid()) if _runs(pid, b"os.fork()")] == []


async def test_s25_printing_for_ever_ends(socket: Path) -> None:
    """S25: output is read, bounded, and its end is kept; no more than that is held."""
    code = "import os\nwhile True:\n    os.write(1, b'abcdefghij' * 1000)"
    ended = await (await launch(_agent(code, socket, replace(_SMALL, output_bytes=3 * MIB)), deadline=60)).wait()
    assert ended.cause is ExitCause.EXCESS
    assert ended.exit_code != 0
    assert "bytes of output" in ended.message
    assert len(ended.message) <= 400


async def test_s25_a_server_that_prints_for_ever_is_read_no_faster_than_anybody_reads(socket: Path) -> None:
    """S25: its log stays short, it waits for whoever reads it, and it ends when it is told to."""
    code = "import os, sys\nprint('up', flush=True)\nwhile True:\n    os.write(2, b'abcdefghij' * 5000)"
    server = await launch_server(
        replace(build_spec(Role.SERVER, code, socket), limits=replace(_SMALL, output_bytes=200_000)), grace=0.2
    )
    assert await server.reader.readline() == b"up\n"
    while len(server.log_tail()) < 1000:  # noqa: ASYNC110 - nobody sends an event
        await asyncio.sleep(0)
    await server.terminate()
    assert server.exit_code() is not None
    assert len(server.log_tail()) <= 16 * 1024


async def test_s25_whoever_ignores_term_is_killed(socket: Path) -> None:
    """S25: TERM first, so that an agent may say a last word; KILL for one that doesn't listen."""
    polite = "import signal, sys, time\nsignal.signal(15, lambda *_: (print('last word'), sys.exit(3)))\ntime.sleep(60)"
    deaf = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(60)"
    first, second = (
        await launch(_agent(polite, socket), deadline=1.5),
        await launch(_agent(deaf, socket), deadline=1.5, grace=0.3),
    )
    said, unsaid = await asyncio.gather(first.wait(), second.wait())
    assert (said.cause, said.exit_code, said.message) == (ExitCause.DEADLINE, 3, "last word")
    assert (unsaid.cause, unsaid.exit_code) == (ExitCause.DEADLINE, -9)


async def test_p25_an_agent_that_hangs_without_a_sign_is_ended(socket: Path) -> None:
    """P25: whoever watches it says that it hangs, and it is ended for that; output counts as a sign of life."""
    code = "import time\nprint('begun', flush=True)\ntime.sleep(60)"
    sandboxed = await launch(
        _agent(code, socket), find_hang=lambda silent: "silent for long" if silent > 0.5 else "", grace=0.2
    )
    ended = await sandboxed.wait()
    assert (ended.cause, ended.message) == (ExitCause.HUNG, "silent for long: begun")


async def test_p8_an_agent_that_ends_its_first_process_is_over(socket: Path) -> None:
    """P8: the first process of a sandbox can't be ended from inside, so nothing can go on without its watcher."""
    code = "import os\nfor number in (9, 15):\n    os.kill(1, number)\nprint(os.getppid())"
    ended = await (await launch(_agent(code, socket))).wait()
    assert (ended.exit_code, ended.message) == (0, "1")


async def test_ansi_and_nul_in_output_are_harmless(socket: Path) -> None:
    """S21: what an agent wrote is shown to people: no control characters get through."""
    ended = await (await launch(_agent("import os; os.write(1, b'a\\x1b[31m\\x00\\xff\\rb')", socket))).wait()
    assert ended.message.isprintable()


async def test_a_start_that_fails_is_the_way_it_ended(socket: Path) -> None:
    """An attempt whose sandbox can't be made ended, with infrastructure as the cause."""
    spec = replace(_agent("", socket), command=("/no/such/program",))
    missing = replace(spec, mounts=(*spec.mounts, replace(spec.mounts[0], source=Path("/no/such/source"))))
    ended = await (await launch(missing)).wait()
    assert ended.cause is ExitCause.START_FAILED
    assert "/no/such/source" in ended.message


async def test_without_a_sandbox_the_interface_is_the_same(socket: Path) -> None:
    """--sandbox=none: same environment, deadline, limits and ending; nothing is hidden, and the report says so."""
    spec = replace(_agent("import os; print(os.getuid())", socket), isolation=Isolation.NONE)
    ended = await (await launch(spec)).wait()
    assert (ended.cause, ended.exit_code, ended.message) == (ExitCause.EXITED, 0, str(os.getuid()))
    deaf = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\ntime.sleep(60)"
    late = await launch(replace(_agent(deaf, socket), isolation=Isolation.NONE), deadline=1.0, grace=0.2)
    assert (await late.wait()).cause is ExitCause.DEADLINE


def _runs(pid: int, code: bytes) -> bool:
    try:
        return code in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
