"""`python -m proctor.jobs.grade`: grades the ended attempts of a run as they appear in the store.

Configuration is one line of JSON on standard input. When that closes, no more attempts end: the rest is graded, and
the program ends. It may be killed at any line and started again: what is graded is taken from the store.

In a pod it is `python -m proctor.jobs.grade --mounted DIR`: configuration from mounted files, and a ConfigMap says when
no more attempts end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from proctor.adapters.clickhouse.results import GradeRow
from proctor.bootstrap.grade import GraderParts, build_grader, parse_grader_config
from proctor.bootstrap.logging import set_up_logging
from proctor.core.digests import canonical_json
from proctor.core.grading.agreement import measure_agreement
from proctor.core.ids import AttemptKey
from proctor.core.trajectory.counting import select_counting
from proctor.core.trajectory.outcome import AttemptRecord
from proctor.errors import InvalidInput, ProctorError, Retryable, Terminal
from proctor.jobs.judging import JudgePanel
from proctor.jobs.marking import JudgedBy, Marker, name_judge

logger = logging.getLogger("proctor.jobs.grade")

_MAX_CONFIG_BYTES = 64 * 1024 * 1024
_POLL_SECONDS = 1.0
"""Attempts come into the store about as often."""

_REST = 20
"""Between two looks it rests so many times as long as the last summary took: one of thousands of grades takes long."""

_OVERLAP = timedelta(seconds=10)
"""Attempts come into the store in about the order in which they ended; now and then all are read once more."""
_WHOLE_SECONDS = 10.0
"""How often: cells wait for the grades of those before them, so one that came late must not wait for the last look."""

_MAX_DELAY_SECONDS = 10.0
_USAGE = 64
_FAILED = 1
_RETRY = 75
"""sysexits' EX_TEMPFAIL."""


class GradingJob:
    """Grades what is in the store, and keeps the summary.

    Args:
        parts: what to work with.
        whole_seconds: how often all attempts are looked at, not only those that ended lately.
        pause: waits for so many seconds before a store that was away is asked again.
    """

    def __init__(
        self,
        parts: GraderParts,
        *,
        whole_seconds: float = _WHOLE_SECONDS,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._parts = parts
        self._pause = pause
        self._whole_seconds = whole_seconds
        self._panel = None if parts.judge is None else JudgePanel(parts.judge)
        self._marker = Marker(parts, self._panel)
        self._grades: dict[str, dict[str, Any]] = {}
        self._known: dict[tuple[str, int], dict[str, Any]] | None = None
        self._records: dict[AttemptKey, AttemptRecord] = {}
        self._unwritten: list[GradeRow] = []
        self._judge_digest = ""
        self._fault = ""
        self._written: bytes = b""
        self._summing_up = 0.0

    async def run(self, ended: asyncio.Event) -> None:
        """Grade until no more attempts end and all of them are graded.

        Args:
            ended: set when no more attempts end.

        Raises:
            Terminal: the store refuses, or the summary can't be written.
        """
        self.write_summary()
        delay, failed, whole_at = _POLL_SECONDS, False, time.monotonic()
        while True:
            last = ended.is_set()
            try:
                is_due = time.monotonic() - whole_at >= self._whole_seconds
                await self.grade_new(all_again=last or failed or is_due)
                whole_at, failed = (time.monotonic() if is_due else whole_at), False
                delay = min(_MAX_DELAY_SECONDS, max(_POLL_SECONDS, _REST * self._summing_up))
                if last:
                    return
            except Retryable as error:
                logger.warning("the store is away", extra={"run": self._parts.run, "problem": type(error).__name__})
                failed = True
                delay = min(_MAX_DELAY_SECONDS, max(delay * 2, error.delay))
            if last:
                await self._pause(delay)
            else:
                await _wait(ended, delay)

    async def close(self) -> None:
        """Close connections."""
        if self._panel is not None:
            await self._panel.close()
        await self._parts.store.close()

    async def grade_new(self, *, all_again: bool = True) -> int:
        """Grade what has no grade yet; return how many that were.

        Args:
            all_again: look at every attempt, not only at those that ended lately.

        Raises:
            Retryable: the store is away; nothing is lost, the next call goes on.
        """
        if self._known is None:
            self._known = await self._read_known()
        if not await self._is_trusted(self._known):
            return 0
        await self._flush()
        if not await self._read_attempts(all_again=all_again):
            return 0
        records = select_counting(self._records.values())
        fresh = [record for record in records if self._attempt_of(record) != record.key.attempt]
        if fresh:
            answers = await self._parts.store.blobs({one.answer_digest for one in fresh if one.answer_digest})
            await self._grade(fresh, answers, self._known)
        return len(fresh)

    def write_summary(self) -> None:
        """Replace the summary in one step, and say on standard output that it changed."""
        began = time.process_time()
        body = canonical_json(
            {
                "grades": self._grades,
                "rubricDigest": self._parts.rubric_digest,
                "judgeDigest": self._judge_digest,
                "fault": self._fault,
                "judge": self._sum_up_judge(),
            }
        )
        if body != self._written:
            _replace(self._parts.summary, body)
            self._written = body
            self._summing_up = time.process_time() - began
            print(json.dumps({"graded": len(self._grades)}), flush=True)  # noqa: T201 - wakes who started us

    async def _is_trusted(self, known: Mapping[tuple[str, int], Mapping[str, Any]]) -> bool:
        """Try the judge on planted answers, once; its digest is in the summary only when it stood the trial.

        No cell starts before the digest is there, so that no agent runs for a judge that is not to be trusted.
        """
        judge = self._parts.judge
        if judge is None or self._panel is None or self._judge_digest:
            return True
        if self._fault:
            return False
        # What this very judge graded before a restart it graded after such a trial.
        if not any(grade.get("judgement") for grade in known.values()):
            self._fault = await self._panel.find_distrust()
        if not self._fault:
            self._judge_digest = judge.digest
        logger.info("judge tried", extra={"run": self._parts.run, "trusted": not self._fault})
        self.write_summary()
        return not self._fault

    def _sum_up_judge(self) -> dict[str, Any] | None:
        """Say who judges, how far its votes agree, and what it took."""
        if self._parts.judge is None or self._panel is None:
            return None
        judged = [grade["judgement"] for grade in self._grades.values() if grade.get("judgement")]
        agreement = measure_agreement(mark["votes"] for judgement in judged for mark in judgement["marks"])
        known = [grade["judgement"] for grade in (self._known or {}).values() if grade.get("judgement")]
        usage = self._panel.usage
        price = self._parts.judge.price
        earlier = sum((Decimal(one["usd"]) for one in known), Decimal(0)) if price is not None else None
        return {
            "model": self._parts.judge.model,
            "votes": self._parts.judge.votes,
            "agreement": None if agreement is None else f"{agreement:.4f}",
            "inputTokens": usage.total - usage.output_tokens + sum(one["inputTokens"] for one in known),
            "outputTokens": usage.output_tokens + sum(one["outputTokens"] for one in known),
            "usd": None if price is None or earlier is None else format(earlier + price.cost(usage), "f"),
        }

    async def _read_attempts(self, *, all_again: bool) -> bool:
        """Read attempts that ended; whether there is anything to grade among them."""
        newest = max((record.ended for record in self._records.values()), default=None)
        since = None if all_again or newest is None else newest - _OVERLAP
        found = {record.key: record for record in await self._parts.store.attempts(self._parts.run, since=since)}
        is_new = bool(found.keys() - self._records.keys())
        self._records.update(found)
        return is_new or all_again

    def _attempt_of(self, record: AttemptRecord) -> int | None:
        grade = self._grades.get(str(record.key.cell))
        return None if grade is None else int(grade["attempt"])

    async def _read_known(self) -> dict[tuple[str, int], dict[str, Any]]:
        """Grades of this run by these rubrics and this judge from before we were started; failures are tried again."""
        return {
            (str(row.key.cell), row.key.attempt): json.loads(row.payload)
            for row in await self._parts.store.grades(self._parts.run)
            if row.score is not None
            and row.key.cell.scenario in self._parts.rubrics
            and row.rubric_digest == self._parts.rubrics[row.key.cell.scenario].digest
            and JudgedBy(row.judge_model, row.judge_prompt_digest) == name_judge(self._parts, row.key.cell)
        }

    async def _grade(
        self,
        fresh: Sequence[AttemptRecord],
        answers: Mapping[str, bytes],
        known: Mapping[tuple[str, int], dict[str, Any]],
    ) -> None:
        """Grade attempts side by side, and show and store each grade as soon as it is there."""
        unknown = []
        for record in fresh:
            grade = known.get((str(record.key.cell), record.key.attempt))
            if grade is None:
                unknown.append(record)
            else:
                self._grades[str(record.key.cell)] = grade
        self.write_summary()
        away: Retryable | None = None
        for grading in asyncio.as_completed([self._marker.grade(one, _find_answer(one, answers)) for one in unknown]):
            try:
                graded = await grading
                cell, attempt = str(graded.key.cell), graded.key.attempt
                self._grades[cell] = graded.payload
                self._unwritten.append(graded.row)
                logger.info("graded", extra={"run": self._parts.run, "cell": cell, "attempt": attempt})
                if graded.payload.get("judgement"):
                    await self._flush()  # before it is shown: whatever kills us then, no judge is asked twice
                    self.write_summary()
            except Retryable as error:
                away = error  # the others go on
        try:
            await self._flush()
        except Retryable as error:
            away = error
        self.write_summary()
        if away is not None:
            raise away

    async def _flush(self) -> None:
        if self._unwritten:
            rows = list(self._unwritten)
            await self._parts.store.write_grades(rows)
            del self._unwritten[: len(rows)]


def _find_answer(record: AttemptRecord, answers: Mapping[str, bytes]) -> bytes | None:
    """Return an attempt's answer, empty where it gave none; None where the store lost it."""
    return answers.get(record.answer_digest) if record.answer_digest else b""


def _replace(path: Path, body: bytes) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as stream:
            stream.write(body)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise Terminal(f"writing the grader's summary {path}: {error.strerror}") from error


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


async def _run() -> None:
    stdin = asyncio.StreamReader(limit=_MAX_CONFIG_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    try:
        line = await stdin.readline()
    except ValueError as error:
        raise InvalidInput(f"the grader's configuration is longer than {_MAX_CONFIG_BYTES} bytes") from error
    parts = build_grader(parse_grader_config(line))
    ended = asyncio.Event()
    watching = asyncio.create_task(_watch(stdin, ended))
    job = GradingJob(parts)
    try:
        await job.run(ended)
    finally:
        watching.cancel()
        await job.close()


async def _watch(stdin: asyncio.StreamReader, ended: asyncio.Event) -> None:
    # Whatever else arrives is dropped; only the end of the stream means something.
    while await stdin.read(4096):
        pass
    ended.set()


def main(arguments: Sequence[str] | None = None) -> int:
    """Grade a run; return the exit code."""
    set_up_logging()
    parser = argparse.ArgumentParser(prog="python -m proctor.jobs.grade", allow_abbrev=False)
    parser.add_argument("--mounted", type=Path, metavar="DIR", help="a pod's mounted configuration")
    mounted: Path | None = parser.parse_args(arguments).mounted
    try:
        if mounted is None:
            asyncio.run(_run())
        else:
            from proctor.jobs.mounted_grade import grade_mounted

            asyncio.run(grade_mounted(mounted))
    except ProctorError as error:
        print(error, file=sys.stderr)  # noqa: T201 - whoever starts the process reads why it did not run
        if isinstance(error, Retryable):
            return _RETRY
        # A Job counts only 1 as final; one machine's executor tells the two apart.
        return _USAGE if isinstance(error, InvalidInput) and mounted is None else _FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
