"""The grader's process, and the summary that it leaves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from decimal import ROUND_UP, Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from proctor.core.gatewaypolicy.pricing import MAX_COUNT
from proctor.core.ids import CellKey
from proctor.errors import InvalidInput, Terminal
from proctor.local.background import Background
from proctor.local.children import Child
from proctor.reconcile.observed import GraderSeen, GraderState, GradeSeen

MAX_SUMMARY_BYTES = 64 * 1024 * 1024
_USAGE = 64
_LEAST_COST = Decimal("0.000001")
_MAX_COST = Decimal(999_999)


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


def merge_summaries(before: GraderSeen, after: GraderSeen) -> GraderSeen:
    """Return the newer summary with what a grader that was started again has not read back yet."""
    if before.rubric_digest != after.rubric_digest or before.judge_digest != after.judge_digest:
        return after
    return replace(after, grades={**before.grades, **after.grades})


def parse_summary(body: bytes) -> GraderSeen:
    """Read a grader's summary.

    Raises:
        Terminal: it is not what a grader writes.
    """
    try:
        values = json.loads(body)
        grades = {CellKey.parse(cell): _parse_grade(grade) for cell, grade in values["grades"].items()}
        judge = values.get("judge") or {}
        agreement, usd = judge.get("agreement"), judge.get("usd")
        return GraderSeen(
            grades=grades,
            rubric_digest=values.get("rubricDigest") or "",
            judge_digest=values.get("judgeDigest") or "",
            agreement=None if agreement is None else Decimal(agreement),
            judge_tokens=(_parse_tokens(judge.get("inputTokens", 0)), _parse_tokens(judge.get("outputTokens", 0))),
            judge_usd=None if usd is None else _parse_cost(usd),
            fault=values.get("fault") or "",
        )
    except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation) as e:
        raise Terminal(f"reading the grader's summary: {e!r}") from e


def _parse_tokens(value: str | int) -> int:
    return min(int(value), MAX_COUNT)  # a provider may count what it likes; the status holds no more


def _parse_cost(value: str) -> Decimal:
    # As above; and rounded up to what the status holds, so that a small cost does not look like none.
    return min(Decimal(value).quantize(_LEAST_COST, ROUND_UP), _MAX_COST)


def _parse_grade(values: Mapping[str, Any]) -> GradeSeen:
    score = values["score"]
    return GradeSeen(
        attempt=int(values["attempt"]),
        score=None if score is None else Decimal(str(score)),
        reason=values.get("ungraded") or "",
    )
