"""Starting bubblewrap so that nothing of it can outlive whoever started it, nor run before its limits are set.

Bubblewrap is bound to its starter by the kernel (a signal at the starter's death), but only once it has asked for
that. Until then the command waits at a gate: it starts when it reads one byte, and ends when it reads the end of the
pipe, which is what a starter's death in between looks like.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import struct
import termios
from dataclasses import dataclass
from pathlib import Path

from proctor.adapters.sandbox.argv import Descriptors, build_bwrap_argv, build_outer_argv
from proctor.adapters.sandbox.availability import find_bwrap
from proctor.adapters.sandbox.processes import (
    Look,
    apply_limits,
    list_children,
    list_descendants,
    look,
    signal_all,
)
from proctor.adapters.sandbox.seccomp import build_filter
from proctor.adapters.sandbox.spec import Limits, SandboxSpec, Ways
from proctor.adapters.sandbox.userns import make_user_namespace
from proctor.errors import Retryable

_START_SECONDS = 30
"""A start takes a few milliseconds; this is for a machine that is about to fall over."""

_MAX_SAID = 2000
_INT = struct.Struct("i")


@dataclass(frozen=True, slots=True)
class Started:
    """A running sandbox.

    Attributes:
        process: bubblewrap, with the command's standard streams.
        init: the sandbox's first process, as this machine numbers it.
        first: a descriptor of that process: its number may be another's as soon as it has ended.
        alive: a descriptor of the process whose end is the end of everything inside.
        block: our end of the pipe for which bubblewrap waits once all is set up.
    """

    process: asyncio.subprocess.Process
    init: int
    first: int
    alive: int
    block: int

    def list_processes(self) -> list[int]:
        """Return the command and everything that it has started."""
        return [] if _has_ended(self.first) else list_descendants(self.init)

    def look(self, limits: Limits) -> Look:
        """Measure what is used inside; of the first process too, into whose memory all others can write."""
        if _has_ended(self.first):
            return look([], limits)
        # Until it has read our byte, its root may still be this machine's.
        root = Path(f"/proc/{self.init}/root") if self.has_begun() else None
        return look([self.init, *list_descendants(self.init)], limits, root=root)

    def signal(self, number: signal.Signals) -> None:
        """Signal the command and everything that it has started."""
        signal_all(self.list_processes(), number)

    def kill(self) -> None:
        """End everything inside at once: the kernel ends a process namespace with its first process."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.alive, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    async def gone(self) -> int:
        """Wait until nothing is left; return the command's exit code."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(self.alive, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self.alive)
        return await self.process.wait()

    def has_begun(self) -> bool:
        """Tell whether the sandbox was made and the command is about to be run: the byte before it was read."""
        waiting = fcntl.ioctl(self.block, termios.FIONREAD, bytes(_INT.size))
        return _INT.unpack(waiting) == (0,)

    def close(self) -> None:
        """Let go of what was held; only once everything is gone."""
        os.close(self.first)
        os.close(self.alive)
        os.close(self.block)


@dataclass(frozen=True, slots=True)
class Streams:
    """How the command's standard streams are connected, in the words of `asyncio.subprocess`."""

    stdin: int
    stdout: int
    stderr: int
    line_bytes: int = 64 * 1024


async def start(spec: SandboxSpec, streams: Streams) -> Started:
    """Start a sandbox; has to be called in the thread that lives as long as the process, since it is bound to it.

    Raises:
        Terminal: bubblewrap is missing.
        Retryable: the sandbox could not be made.
    """
    bwrap = find_bwrap()
    userns = await asyncio.to_thread(make_user_namespace, bwrap)
    with contextlib.ExitStack() as ours:
        if userns is not None:
            ours.callback(os.close, userns)
        pipes = _Pipes(ours)
        serving = _listen(spec.ways, ours)
        command, passed = _wrap(spec, pipes, serving)
        descriptors = Descriptors(
            seccomp=_write_file("filter", build_filter(), ours),
            info=pipes.info_write,
            block=pipes.block_read,
            userns=userns,
        )
        folders = frozenset(_find_folders(spec))
        words = build_bwrap_argv(spec, descriptors, command=command, folders=folders)
        split = words.index("--")
        # Values of the environment are secrets, and every user of the machine can read command lines.
        arguments = _write_file("arguments", b"".join(word.encode() + b"\0" for word in words[:split]), ours)
        numbers = [descriptors.seccomp, descriptors.info, descriptors.block, userns, arguments, *passed]
        outer: list[str] = []
        if userns is not None:
            outer = build_outer_argv(str(bwrap), pipes.outer_write)
            numbers.append(pipes.outer_write)
        process = await asyncio.create_subprocess_exec(
            *outer,
            str(bwrap),
            *("--args", str(arguments)),
            *words[split:],
            stdin=streams.stdin,
            stdout=streams.stdout,
            stderr=streams.stderr,
            limit=streams.line_bytes,
            # Bubblewrap's own environment can be read inside, as that of the sandbox's first process.
            env={},
            cwd="/",
            pass_fds=[number for number in numbers if number is not None],
        )
        pipes.close_far_ends()
        try:
            return await _release(process, pipes, spec, nested=bool(outer))
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise


class _Pipes:
    def __init__(self, ours: contextlib.ExitStack) -> None:
        self.info_read, self.info_write = os.pipe()
        self.outer_read, self.outer_write = os.pipe()
        self.block_read, self.block_write = os.pipe()
        self.gate_read, self.gate_write = os.pipe()
        for number in (self.info_read, self.outer_read, self.block_write, self.gate_write):
            ours.callback(os.close, number)
        self._far = contextlib.ExitStack()
        ours.callback(os.close, self.block_read)
        for number in (self.info_write, self.outer_write, self.gate_read):
            self._far.callback(os.close, number)
        ours.callback(self._far.close)

    def close_far_ends(self) -> None:
        self._far.close()


async def _release(process: asyncio.subprocess.Process, pipes: _Pipes, spec: SandboxSpec, *, nested: bool) -> Started:
    try:
        async with asyncio.timeout(_START_SECONDS):
            outer = await _read_init(pipes.outer_read) if nested else None
            inner = await _read_init(pipes.info_read)
    except TimeoutError as e:
        raise Retryable(f"sandbox: bubblewrap did not start within {_START_SECONDS} s") from e
    if inner is None or (nested and outer is None):
        raise Retryable(f"sandbox: bubblewrap did not start: {await _read_errors(process)}")
    try:
        # Bubblewrap tells the number that its child has where itself is: for a nested one, that is not here.
        init = inner if outer is None else _only_child(_only_child(outer))
        first = os.pidfd_open(init)
        alive = os.pidfd_open(init if outer is None else outer)
        apply_limits(init, spec.limits)
    except ProcessLookupError as e:
        raise Retryable(f"sandbox: it ended while it was made: {await _read_errors(process)}") from e
    started = Started(process, init, first, alive, os.dup(pipes.block_read))
    os.write(pipes.block_write, b"\n")
    if spec.ways is not None:
        os.write(pipes.gate_write, b"\n")
    elif process.stdin is not None:
        process.stdin.write(b"\n")
        process.stdin.close()
    return started


def _has_ended(process: int) -> bool:
    return bool(select.select([process], [], [], 0)[0])


async def _read_errors(process: asyncio.subprocess.Process) -> str:
    stream = process.stderr or process.stdout
    said = b"" if stream is None else await stream.read(_MAX_SAID)
    return said.decode("utf-8", "replace").strip()


def _only_child(pid: int) -> int:
    children = list_children(pid)
    if not children:
        raise ProcessLookupError(f"process {pid} has no child")
    return children[0]


async def _read_init(info: int) -> int | None:
    loop = asyncio.get_running_loop()
    text = b""
    ready = asyncio.Event()
    loop.add_reader(info, ready.set)
    try:
        while b"}" not in text:
            await ready.wait()
            ready.clear()
            piece = os.read(info, 4096)
            if not piece:
                return None
            text += piece
    finally:
        loop.remove_reader(info)
    return int(json.loads(text)["child-pid"])


def _wrap(spec: SandboxSpec, pipes: _Pipes, serving: dict[int, int]) -> tuple[tuple[str, ...], list[int]]:
    """Return the command behind its gate, and the descriptors that it is given."""
    if spec.ways is None:
        return spec.command, []
    words = [*spec.ways.program, "--gate", str(pipes.gate_read)]
    for port, path in spec.ways.out.items():
        words += ["--connect", str(port), path]
    for port, number in serving.items():
        words += ["--serve", str(number), str(port)]
    return (*words, "--", *spec.command), [pipes.gate_read, *serving.values()]


def _listen(ways: Ways | None, ours: contextlib.ExitStack) -> dict[int, int]:
    """Open the sockets through which ports inside are reached: the sandbox gets them open, and no folder to write."""
    serving: dict[int, int] = {}
    for port, path in (ways.inward if ways else {}).items():
        listener = ours.enter_context(socket.socket(socket.AF_UNIX))
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        listener.listen()
        serving[port] = listener.fileno()
    return serving


def _find_folders(spec: SandboxSpec) -> list[Path]:
    """Return the hidden paths that are folders, looked up where the mounts take them from."""
    found = []
    for hidden in spec.hidden:
        for mount in reversed(spec.mounts):
            if hidden.is_relative_to(mount.target):
                if (mount.source / hidden.relative_to(mount.target)).is_dir():
                    found.append(hidden)
                break
    return found


def _write_file(name: str, content: bytes, ours: contextlib.ExitStack) -> int:
    number = os.memfd_create(name)
    ours.callback(os.close, number)
    os.write(number, content)
    os.lseek(number, 0, os.SEEK_SET)
    return number
