"""`python -m proctor.jobs.grade`: grades the ended attempts of a run as they appear in the store.

Configuration is one line of JSON on standard input. When that closes, no more attempts end: the rest is graded, and
the program ends. It may be killed at any line and started again: what is graded is taken from the store.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.adapters.clickhouse.results import GradeRow
from proctor.bootstrap.grade import GraderParts, build_grader, parse_grader_config
from proctor.bootstrap.logging import set_up_logging
from proctor.core.digests import canonical_json
from proctor.core.grading.attempts import grade_attempt, select_attempts
from proctor.core.grading.marks import Ungraded
from proctor.core.grading.rendering import render_grade
from proctor.core.trajectory.outcome import AttemptRecord
from proctor.errors import InvalidInput, ProctorError, Retryable, Terminal

logger = logging.getLogger("proctor.jobs.grade")

_MAX_CONFIG_BYTES = 64 * 1024 * 1024
_POLL_SECONDS = 0.3
_MAX_DELAY_SECONDS = 10.0
_USAGE = 64
_FAILED = 1


class GradingJob:
    """Grades what is in the store, and keeps the summary.

    Args:
        parts: what to work with.
    """

    def __init__(self, parts: GraderParts) -> None:
        self._parts = parts
        self._grades: dict[str, dict[str, Any]] = {}
        self._known: dict[tuple[str, int], dict[str, Any]] | None = None
        self._written: bytes = b""

    async def run(self, ended: asyncio.Event) -> None:
        """Grade until no more attempts end and all of them are graded.

        Args:
            ended: set when no more attempts end.

        Raises:
            Terminal: the store refuses, or the summary can't be written.
        """
        self.write_summary()
        delay = _POLL_SECONDS
        while True:
            last = ended.is_set()
            try:
                await self.grade_new()
                delay = _POLL_SECONDS
                if last:
                    return
            except Retryable as error:
                logger.warning("the store is away", extra={"run": self._parts.run, "problem": type(error).__name__})
                delay = min(_MAX_DELAY_SECONDS, max(delay * 2, error.delay))
            if last:
                await asyncio.sleep(delay)
            else:
                await _wait(ended, delay)

    async def grade_new(self) -> int:
        """Grade what has no grade yet; return how many that were.

        Raises:
            Retryable: the store is away; nothing is lost, the next call goes on.
        """
        if self._known is None:
            self._known = await self._read_known()
        records = select_attempts(await self._parts.store.attempts(self._parts.run))
        fresh = [record for record in records if self._attempt_of(record) != record.key.attempt]
        if fresh:
            answers = await self._parts.store.blobs({one.answer_digest for one in fresh if one.answer_digest})
            rows = [self._grade(record, answers) for record in fresh]
            await self._parts.store.write_grades([row for row in rows if row is not None])
            self._grades.update({str(one.key.cell): self._known[str(one.key.cell), one.key.attempt] for one in fresh})
            self.write_summary()
        return len(fresh)

    def write_summary(self) -> None:
        """Replace the summary in one step, and say on standard output that it changed."""
        body = canonical_json(
            {"grades": self._grades, "rubricDigest": self._parts.rubric_digest, "judgeDigest": "", "fault": ""}
        )
        if body != self._written:
            _replace(self._parts.summary, body)
            self._written = body
            print(json.dumps({"graded": len(self._grades)}), flush=True)  # noqa: T201 - wakes who started us

    def _attempt_of(self, record: AttemptRecord) -> int | None:
        grade = self._grades.get(str(record.key.cell))
        return None if grade is None else int(grade["attempt"])

    async def _read_known(self) -> dict[tuple[str, int], dict[str, Any]]:
        """Grades of this run by these rubrics from before we were started."""
        digests = {name: rubric.digest for name, rubric in self._parts.rubrics.items()}
        return {
            (str(row.key.cell), row.key.attempt): json.loads(row.payload)
            for row in await self._parts.store.grades(self._parts.run)
            if row.rubric_digest == digests.get(row.key.cell.scenario) and not row.judge_model
        }

    def _grade(self, record: AttemptRecord, answers: Mapping[str, bytes]) -> GradeRow | None:
        """Grade one attempt; None if the store had its grade already."""
        assert self._known is not None  # noqa: S101 - read before anything is graded
        cell, attempt = str(record.key.cell), record.key.attempt
        if (cell, attempt) in self._known:
            return None
        rubric = self._parts.rubrics[record.key.cell.scenario]
        outcome: Ungraded | None = None
        payload: dict[str, Any]
        score = None
        if record.answer_digest and record.answer_digest not in answers:
            outcome = Ungraded("the store does not hold the answer's text")
            payload = {"score": None, "ungraded": outcome.reason, "programmatic": None, "judge": None, "penalty": "0"}
        else:
            grade = grade_attempt(rubric, record, answers.get(record.answer_digest, b""), self._parts.weights)
            payload, score = render_grade(grade) | {"ungraded": None}, grade.score
        self._known[cell, attempt] = payload | {"attempt": attempt}
        logger.info("graded", extra={"run": self._parts.run, "cell": cell, "attempt": attempt})
        return GradeRow(
            key=record.key,
            rubric_digest=rubric.digest,
            score=score,
            payload=canonical_json(self._known[cell, attempt]).decode(),
        )


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
    try:
        await GradingJob(parts).run(ended)
    finally:
        watching.cancel()
        await parts.store.close()


async def _watch(stdin: asyncio.StreamReader, ended: asyncio.Event) -> None:
    # Whatever else arrives is dropped; only the end of the stream means something.
    while await stdin.read(4096):
        pass
    ended.set()


def main() -> int:
    """Grade a run; return the exit code."""
    set_up_logging()
    try:
        asyncio.run(_run())
    except ProctorError as error:
        print(error, file=sys.stderr)  # noqa: T201 - whoever starts the process reads why it did not run
        return _USAGE if isinstance(error, InvalidInput) else _FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
