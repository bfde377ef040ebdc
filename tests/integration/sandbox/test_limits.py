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

_SMALL = Limits(memory_bytes=96 * MIB, processes=24, scratch_bytes=8 * MIB, file_bytes=4 * MIB, open_files=64)

_GREEDY = """
held = []
while True:
    held.append(bytearray(4_000_000))
    for page in range(0, 4_000_000, 4096):
        held[-1][page] = 1
"""


def _agent(code: str, socket: Path, limits: Limits = _SMALL, **variables: str) -> SandboxSpec:
    return replace(build_spec(Role.AGENT, code, socket, variables=variables), limits=limits)


async def test_s23_a_memory_bomb_is_ended_with_its_own_limit_as_the_cause(socket: Path) -> None:
    """S23, P7: above its own limit an agent is ended, and the cause says so; infrastructure is not blamed."""
    ended = await (await launch(_agent(_GREEDY, socket))).wait()
    assert ended.cause is ExitCause.MEMORY
    assert "bytes of memory" in ended.message


async def test_s23_a_memory_bomb_of_many_processes_is_counted_whole(socket: Path) -> None:
    """S23: the limit is on the sum: ten processes that each stay below it don't get around it."""
    child = "        x = b'x' * 20_000_000\n        time.sleep(60)\n"
    code = f"import os, time\nfor _ in range(10):\n    if os.fork() == 0:\n{child}time.sleep(60)"
    ended = await (await launch(_agent(code, socket), deadline=40)).wait()
    assert ended.cause is ExitCause.MEMORY


async def test_s23_what_stays_below_the_limit_runs(socket: Path) -> None:
    """S23, positive control."""
    ended = await (await launch(_agent("x = b'x' * 30_000_000; print(len(x))", socket))).wait()
    assert (ended.cause, ended.exit_code, ended.message) == (ExitCause.EXITED, 0, "30000000")


async def test_s23_one_huge_request_fails_inside(socket: Path) -> None:
    """S23: a single request above the limit is refused by the kernel, before any of it exists."""
    ended = await (await launch(_agent("b'x' * 2_000_000_000", socket))).wait()
    assert (ended.cause, ended.exit_code) == (ExitCause.EXITED, 1)
    assert "MemoryError" in ended.message


async def test_s23_a_server_under_test_has_its_limit_too(socket: Path) -> None:
    """S23: a server that eats memory is ended, and its log says why."""
    spec = replace(build_spec(Role.SERVER, _GREEDY, socket), limits=_SMALL)
    server = await launch_server(spec)
    assert await server.reader.read() == b""
    await server.terminate()
    assert "bytes of memory" in server.excess
    assert "bytes of memory" in server.log_tail()


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
