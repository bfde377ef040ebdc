"""The grader's process, and the summary that it leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from proctor.errors import InvalidInput, Terminal
from proctor.local.background import Background
from proctor.local.children import Child
from proctor.reconcile.grader_summary import merge_summaries, parse_summary
from proctor.reconcile.observed import GraderSeen, GraderState

MAX_SUMMARY_BYTES = 64 * 1024 * 1024
_USAGE = 64


class Grader:
    """Keeps at most one grader of a run; grades as attempts end, and ends when told that no more come.

    Args:
        build_config: returns the grader's configuration; called for every start.
        summary: the file that it replaces in one step whenever it has graded something.
        log: takes its standard error.
        background: runs what goes on beside the passes.
    """

    def __init__(
        self,
        build_config: Callable[[], Awaitable[Mapping[str, Any]]],
        *,
        summary: Path,
        log: Path,
        background: Background,
    ) -> None:
        self._build_config = build_config
        self._summary = summary
        self._log = log
        self._background = background
        self._child: Child | None = None
        self._starting = False
        self._starts = 0
        self._state = GraderState.ABSENT
        self._finishing = False
        self._message = ""
        self._task: asyncio.Task[None] | None = None
        self._read: tuple[tuple[int, int], GraderSeen] | None = None
        self.faults: list[Terminal] = []

    def observe(self) -> GraderSeen:
        """Return what the process is like now, and what its summary says."""
        summary = self._read_summary()
        return GraderSeen(
            state=self._state,
            starts=self._starts,
            finishing=self._finishing,
            grades=summary.grades,
            rubric_digest=summary.rubric_digest,
            judge_digest=summary.judge_digest,
            agreement=summary.agreement,
            judge_tokens=summary.judge_tokens,
            judge_usd=summary.judge_usd,
            fault=summary.fault,
            message=self._message,
        )

    def start(self) -> None:
        """Begin to start a process, unless there is one."""
        if self._state is not GraderState.RUNNING:
            self._state = GraderState.RUNNING
            self._finishing = False
            self._starts += 1
            self._task = self._background.spawn(self._live())

    def finish(self) -> None:
        """Tell the process that no more attempts end; it grades the rest and ends."""
        if self._child is not None:
            self._finishing = True
            self._child.close_input()

    async def stop(self) -> None:
        """End the process; grades that it has written are kept."""
        if self._child is not None:
            await self._child.stop(patience=2.0)
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _live(self) -> None:
        try:
            self._child = await Child.start("proctor.jobs.grade", await self._build_config(), log=self._log)
            self._background.notify()
            while await self._child.read_line():
                self._background.notify()  # it writes a line whenever its summary has changed
            code = await self._child.wait()
        except (Terminal, InvalidInput) as error:
            self.faults.append(Terminal(str(error)))
            self._state = GraderState.FAILED
        else:
            self._message = self._child.last_words()
            if code == _USAGE:
                self.faults.append(Terminal(f"starting the grader: {self._message}"))
            self._state = GraderState.FINISHED if code == 0 and self._finishing else GraderState.FAILED
        finally:
            self._child = None
            self._background.notify()

    def _read_summary(self) -> GraderSeen:
        try:
            stat = self._summary.stat()
        except OSError:
            return GraderSeen()
        stamp = (stat.st_mtime_ns, stat.st_ino)
        if self._read is None or self._read[0] != stamp:
            seen = parse_summary(self._summary.read_bytes()[:MAX_SUMMARY_BYTES])
            self._read = (stamp, seen if self._read is None else merge_summaries(self._read[1], seen))
        return self._read[1]
