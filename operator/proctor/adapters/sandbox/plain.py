"""The same, without a sandbox: an ordinary process in a session of its own, for `--sandbox=none`."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
from dataclasses import dataclass

from proctor.adapters.sandbox.processes import Look, apply_limits, list_descendants, look, signal_all
from proctor.adapters.sandbox.spec import Limits, SandboxSpec

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Plain:
    """A running process and what it has started; what leaves its session and its parents is out of reach."""

    process: asyncio.subprocess.Process

    def list_processes(self) -> list[int]:
        """Return the command and everything that it has started."""
        return [self.process.pid, *list_descendants(self.process.pid)]

    def look(self, limits: Limits) -> Look:
        """Measure what it uses."""
        return look(self.list_processes(), limits)

    def signal(self, number: signal.Signals) -> None:
        """Signal the command and everything that it has started."""
        signal_all(self.list_processes(), number)

    def kill(self) -> None:
        """End everything that can be found."""
        left = list_descendants(self.process.pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        signal_all(left, signal.SIGKILL)

    async def gone(self) -> int:
        """Wait for the command; end what it leaves behind; return its exit code."""
        code = await self.process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        return code

    def has_begun(self) -> bool:
        """Say yes: a process that can't be run is an error at its start."""
        return True

    def close(self) -> None:
        """Nothing is held."""


async def start_plain(spec: SandboxSpec) -> Plain:
    """Start a command as an ordinary process.

    Raises:
        OSError: it can't be run.
    """
    libc = ctypes.CDLL(None)

    def die_with_parent() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    process = await asyncio.create_subprocess_exec(
        *spec.command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=dict(spec.environment),
        cwd="/",
        start_new_session=True,
        preexec_fn=die_with_parent,
    )
    with contextlib.suppress(ProcessLookupError):
        apply_limits(process.pid, spec.limits)
    if process.stdin is not None:
        process.stdin.write(b"\n")
        process.stdin.close()
    return Plain(process)
