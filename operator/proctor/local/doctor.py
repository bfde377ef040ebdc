"""Looking at this machine as a run would use it: what can be tried is tried, within a time limit."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import proctor
from proctor.adapters.clickhouse.session import HttpSession
from proctor.adapters.sandbox.availability import find_bwrap, sandbox_available
from proctor.adapters.sandbox.claude_code import CLAUDE_CODE_VERSION, find_claude_code
from proctor.adapters.sandbox.commands import find_program
from proctor.core.reports.machine import Finding, State
from proctor.errors import InvalidInput, ProctorError
from proctor.local.engine import Access, Engine
from proctor.local.engine.serve import LEAST_LANDLOCK, landlock_version
from proctor.local.locks import read_holder
from proctor.local.secrets import ANTHROPIC_VARIABLE

TRY_SECONDS = 30.0
"""For each thing that is tried; on a busy machine an engine has been seen to take ten."""

_LEAST_PYTHON = (3, 11)
_INSTALL = "pip install 'proctor[local]'"
_QUICKSTART_SERVERS = ("mcp-clickhouse", "clickscope")
_GIB = 1 << 30
_LEAST_MEMORY = 2 * _GIB
"""Two engines, the gateway, the grader, two agents and two servers of the quickstart took 1.6 GiB."""
_LEAST_DISK = 1 * _GIB
"""The quickstart's dataset takes 60 MB, one at full scale 4 GB."""
_NEW_KERNEL = "run it on Linux 5.19 or later with CONFIG_SECURITY_LANDLOCK, and landlock in lsm="


async def examine(data_dir: Path, environment: Mapping[str, str] | None = None) -> tuple[Finding, ...]:
    """Look at everything that a run needs.

    Args:
        data_dir: where runs would be.
        environment: variables; this process's if left out.
    """
    environment = os.environ if environment is None else environment
    looks: Sequence[tuple[str, Callable[[], Awaitable[Finding]]]] = (
        ("python", _in_thread(_look_at_python)),
        ("clock", _in_thread(_look_at_clock)),
        ("memory", _in_thread(_look_at_memory)),
        ("data dir", _in_thread(partial(_look_at_data_dir, data_dir))),
        ("disk", _in_thread(partial(_look_at_disk, data_dir))),
        ("lock", _in_thread(partial(_look_at_lock, data_dir))),
        ("landlock", _in_thread(_look_at_landlock)),
        ("seccomp", _in_thread(_look_at_seccomp)),
        ("sandbox", _in_thread(_try_sandbox)),
        ("engine", _try_engine),
        *((name, _in_thread(partial(_look_for_server, name, environment))) for name in _QUICKSTART_SERVERS),
        ("claude code", _in_thread(partial(_look_for_claude_code, data_dir, environment))),
        ("model key", _in_thread(partial(_look_for_key, environment))),
    )
    # One after another: side by side, a small machine would be too busy for any of them.
    return tuple([await _look(name, look) for name, look in looks])


async def _look(name: str, look: Callable[[], Awaitable[Finding]]) -> Finding:
    try:
        return await asyncio.wait_for(look(), TRY_SECONDS)
    except TimeoutError:
        return Finding(name, State.LACKS, f"no answer within {TRY_SECONDS:.0f} s", "try again when the machine is idle")
    except (ProctorError, OSError) as error:
        return Finding(name, State.LACKS, str(error), _INSTALL)


def _in_thread(look: Callable[[], Finding]) -> Callable[[], Awaitable[Finding]]:
    return lambda: asyncio.to_thread(look)


def _look_at_python() -> Finding:
    found = platform.python_version()
    if sys.version_info < _LEAST_PYTHON:
        return Finding("python", State.LACKS, found, "install Python 3.11 or later, and Proctor anew")
    return Finding("python", State.OK, f"{found}, Proctor {version('proctor')}, {platform.machine()}")


def _look_at_clock() -> Finding:
    now = datetime.now(UTC)
    # Nothing can be installed in the future; certificates of providers would not hold either.
    installed = datetime.fromtimestamp(Path(proctor.__file__).stat().st_mtime, UTC)
    if now < installed:
        return Finding(
            "clock", State.LACKS, f"{now:%F %T} UTC is before Proctor was installed", "timedatectl set-ntp true"
        )
    return Finding("clock", State.OK, f"{now:%F %T} UTC")


def _look_at_memory() -> Finding:
    free = _available_memory()
    if free < _LEAST_MEMORY:
        what = f"{free / _GIB:.1f} GiB are free, the quickstart takes {_LEAST_MEMORY / _GIB:.0f}"
        return Finding("memory", State.LACKS, what, "end other programs, or set `parallelism: 1` on a larger machine")
    return Finding("memory", State.OK, f"{free / _GIB:.1f} GiB free, {os.cpu_count()} cores")


def _available_memory() -> int:
    lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    group = Path("/sys/fs/cgroup")
    try:
        most = (group / "memory.max").read_text("ascii").strip()
        used = (group / "memory.current").read_text("ascii").strip()
    except OSError:
        return free  # no limit but the machine's
    return free if most == "max" else min(free, int(most) - int(used))


def _look_at_data_dir(data_dir: Path) -> Finding:
    mend = "choose another with --data-dir or PROCTOR_DATA_DIR"
    probe = data_dir / f".doctor-{uuid.uuid4().hex}"
    made = [path for path in (data_dir, *data_dir.parents) if not path.exists()]
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"x")
        probe.unlink()
    except OSError as error:
        return Finding("data dir", State.LACKS, f"{data_dir}: {error.strerror}", mend)
    for path in made:  # a look leaves nothing behind
        path.rmdir()
    return Finding("data dir", State.OK, str(data_dir))


def _look_at_disk(data_dir: Path) -> Finding:
    there = next(path for path in (data_dir, *data_dir.parents) if path.exists())
    free = shutil.disk_usage(there).free
    if free < _LEAST_DISK:
        what = f"{free / _GIB:.1f} GiB are free, a run wants {_LEAST_DISK / _GIB:.0f}"
        return Finding(
            "disk", State.LACKS, what, f"remove what is not needed: proctor dataset ls --data-dir {data_dir}"
        )
    return Finding("disk", State.OK, f"{free / _GIB:.0f} GiB free")


def _look_at_lock(data_dir: Path) -> Finding:
    holder = read_holder(data_dir)
    if holder is not None:
        return Finding("lock", State.OK, f"{holder or 'a run'} is at work; another waits in line")
    clones = data_dir / "clones"
    left = sum(1 for _ in clones.iterdir()) if clones.is_dir() else 0
    told = f"; {left} clones are left of a run that was killed, and the next run removes them" if left else ""
    return Finding("lock", State.OK, f"free{told}")


def _look_at_landlock() -> Finding:
    version = landlock_version()
    if version < LEAST_LANDLOCK:
        what = f"kernel {platform.release()} can't keep an engine from reading this machine's files"
        return Finding("landlock", State.LACKS, what, _NEW_KERNEL)
    return Finding("landlock", State.OK, f"version {version}, kernel {platform.release()}")


def _look_at_seccomp() -> Finding:
    actions = Path("/proc/sys/kernel/seccomp/actions_avail")
    if not actions.is_file() or "errno" not in actions.read_text("ascii").split():
        return Finding(
            "seccomp", State.LACKS, "the kernel filters no system calls", "use a kernel with CONFIG_SECCOMP_FILTER"
        )
    return Finding("seccomp", State.OK, "filters system calls")


def _try_sandbox() -> Finding:
    reason = sandbox_available()
    if reason is None:
        return Finding("sandbox", State.OK, f"one was started with {find_bwrap()}")
    what, _, mend = reason.partition(": ")
    return Finding("sandbox", State.LACKS, what, mend or _INSTALL)


async def _try_engine() -> Finding:
    if find_spec("chdb") is None:
        return Finding("engine", State.LACKS, "the embedded ClickHouse is not installed", _INSTALL)
    with tempfile.TemporaryDirectory(prefix="proctor-doctor-") as folder:
        root = Path(folder)
        async with Engine.start(root / "engine", log=root / "engine.log", access=Access("doctor")) as engine:
            ((found,),) = await HttpSession(engine.endpoint).fetch("SELECT version()")
    return Finding("engine", State.OK, f"ClickHouse {found} was started, and asked")


def _look_for_server(name: str, environment: Mapping[str, str]) -> Finding:
    try:
        program = find_program(name, environment.get("PATH", os.defpath))
    except InvalidInput:
        return Finding(name, State.WITHOUT, "not there; the quickstart asks agents through it", f"pip install {name}")
    return Finding(name, State.OK, str(program))


def _look_for_claude_code(data_dir: Path, environment: Mapping[str, str]) -> Finding:
    found = find_claude_code(data_dir, environment)
    if found.program is None:
        what, _, mend = found.problem.partition(": ")
        return Finding("claude code", State.WITHOUT, f"{what}; only `runtime: ClaudeCode` needs it", mend)
    return Finding("claude code", State.OK, f"{CLAUDE_CODE_VERSION}, {found.program}")


def _look_for_key(environment: Mapping[str, str]) -> Finding:
    if environment.get(ANTHROPIC_VARIABLE):
        return Finding("model key", State.OK, f"{ANTHROPIC_VARIABLE} is set")
    what = f"{ANTHROPIC_VARIABLE} is not set; scripted models need none"
    return Finding(
        "model key", State.WITHOUT, what, f"export {ANTHROPIC_VARIABLE}=…, or give --secrets DIR to `proctor run`"
    )
