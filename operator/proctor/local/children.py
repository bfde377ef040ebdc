"""Child processes that never outlive this one, and whose last words are kept."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from proctor.errors import Terminal
from proctor.local.durable import translate_os_error

_PR_SET_PDEATHSIG = 1
_LINE_LIMIT = 4 * 1024 * 1024
_TERM_SECONDS = 5.0
_TAIL_BYTES = 4096
_LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the thread that started it ends, however it does."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Child:
    """One of our own programs: a module of this interpreter, told what to do by one line of JSON.

    Its standard input stays open as long as we live: its end tells the child to stop. Should the child be stuck, the
    kernel kills it when we die.
    """

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log
        self._waiting = asyncio.ensure_future(process.wait())

    @classmethod
    async def start(cls, module: str, config: Mapping[str, object], *, log: Path) -> Self:
        """Start ``python -m module``.

        Args:
            module: its entry module.
            config: sent as its first line of input; secrets are neither on the disk nor in its arguments.
            log: takes its standard error.

        Raises:
            Terminal: it could not be started.
        """
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("ab") as stream:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    module,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=stream,
                    limit=_LINE_LIMIT,
                    # A group of its own: the terminal's Ctrl-C is for us alone, we end children in order.
                    start_new_session=True,
                    preexec_fn=die_with_parent,
                    env=_build_environment(),
                )
        except OSError as e:
            raise translate_os_error(e, f"starting {module}") from e
        child = cls(process, log)
        await child.send(config)
        return child

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.returncode

    async def send(self, message: Mapping[str, object]) -> None:
        """Write one line to its standard input; a child that is gone takes none."""
        stream = self._process.stdin
        if stream is None:
            return
        try:
            stream.write(json.dumps(message).encode() + b"\n")
            await stream.drain()
        except (BrokenPipeError, ConnectionResetError):
            return

    def close_input(self) -> None:
        """End its standard input."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def read_line(self) -> bytes:
        """Return the next line of its standard output; empty at its end.

        Raises:
            Terminal: a line is larger than anything that our own programs write.
        """
        stream = self._process.stdout
        if stream is None:
            return b""
        try:
            return await stream.readline()
        except ValueError as e:
            raise Terminal(f"process {self.pid}: a line of its output is larger than {_LINE_LIMIT} bytes") from e

    async def wait(self) -> int:
        """Return its exit code when it ends; may be awaited by many."""
        return await asyncio.shield(self._waiting)

    async def stop(self, *, patience: float = _TERM_SECONDS) -> None:
        """End it: its input closed, then TERM, then KILL for its whole group."""
        self.close_input()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                self._signal(number)
            done, _ = await asyncio.wait({self._waiting}, timeout=patience)
            if done:
                break
        self._signal(signal.SIGKILL)
        self._process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - a grandchild may hold the pipes open

    def last_words(self) -> str:
        """Return the last lines of its log, for a message to people."""
        return read_tail(self._log)

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return


def read_tail(path: Path, *, lines: int = 3) -> str:
    """Return the last lines of a text file as printable text; empty if there is none."""
    try:
        with path.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - _TAIL_BYTES))
            text = stream.read().decode("utf-8", "replace")
    except OSError:
        return ""
    kept = deque((line for line in text.splitlines() if line.strip()), maxlen=lines)
    return "".join(sign if sign.isprintable() else " " for sign in " | ".join(kept))


def _build_environment() -> dict[str, str]:
    """Return what our own programs need of our environment; keys travel on their standard input instead."""
    kept = (
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "TMPDIR",
        "VIRTUAL_ENV",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "NO_PROXY",
        "https_proxy",
        "http_proxy",
        "no_proxy",
    )
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment["PYTHONUNBUFFERED"] = "1"
    environment["PYTHONDONTWRITEBYTECODE"] = os.environ.get("PYTHONDONTWRITEBYTECODE", "")
    return environment
