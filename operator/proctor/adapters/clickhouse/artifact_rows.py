"""Rows of the queries in an artifact, asked as the user that agents are, within tighter bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial

from proctor.adapters.clickhouse.answers import ClickHouseError, PassingError
from proctor.adapters.clickhouse.datasets import run_at_once
from proctor.adapters.clickhouse.session import Settings, SqlSession
from proctor.core.grading.rows import Extent, Fetched, Question, Refused, Rows
from proctor.core.seeding.schema import LOGS, METRICS, TRACES
from proctor.errors import Retryable

_BOUNDS: Settings = {
    "readonly": 1,
    "max_result_rows": 5000,
    "max_result_bytes": 8 << 20,
    "max_memory_usage": 1_000_000_000,
    "max_threads": 2,
    "max_ast_elements": 20_000,
    "max_expanded_ast_elements": 100_000,
    # A bound that is met ends the query; cut rows would be graded as if they were all.
    "result_overflow_mode": "throw",
    "timeout_overflow_mode": "throw",
}
_TRIES = 2
_AT_ONCE = 4
_KEPT = 400
_SMALL = 64 * 1024
"""Queries whose rows are kept, and how many signs these may have: those of the answer key have fewer."""
_OVER_BOUNDS = frozenset({159, 241})
"""Time and memory: the query's own fault if it happens again, for its bounds are the same then."""
_READ_ONLY = 164
"""To a query that only reads, this says that it wanted to change a setting."""
_REASON = 300
_OPENING = "DB::Exception:"

_ALONE = "SelectWithUnionQuery (children 1)"
"""How the outline of a statement begins that is one SELECT with no form, file or settings behind it."""

_HALVES = {TRACES: "Timestamp", LOGS: "Timestamp"} | dict.fromkeys(METRICS, "TimeUnix, Attributes")
_FILTERS = {
    Extent.HALF: {table: f"cityHash64({columns}) % 2 = 0" for table, columns in _HALVES.items()},
    Extent.NONE: dict.fromkeys(_HALVES, "0"),
}


class DatasetRows:
    """Asks one dataset.

    Args:
        session: the dataset, as its restricted user.
        pause: seconds before a dataset that was away is asked again.
        seconds: how long a query may take: as long as agents may ask at all, for the machine may be a busy one.
    """

    def __init__(self, session: SqlSession, *, pause: float = 2.0, seconds: int = 30) -> None:
        self._session = session
        self._pause = pause
        self._bounds = {**_BOUNDS, "max_execution_time": seconds}
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._known: dict[Question, Fetched] = {}

    async def fetch(self, questions: Iterable[Question]) -> dict[Question, Fetched]:
        """Return what each query gives; a query that is at fault says so, and is not asked over other rows.

        Raises:
            Retryable: the dataset is away.
        """
        wanted: dict[Question, list[Question]] = {}
        for question in dict.fromkeys(questions):
            wanted.setdefault(question._replace(extent=Extent.WHOLE), []).append(question)
        fetched: dict[Question, Fetched] = {}

        async def ask(alike: list[Question]) -> None:
            fetched.update(await self._ask_alike(alike))

        await run_at_once([partial(ask, alike) for alike in wanted.values()], _AT_ONCE)
        return fetched

    async def _ask_alike(self, alike: list[Question]) -> dict[Question, Fetched]:
        """Ask a query over each extent; the dataset never changes, so that what many answers ask is asked once."""
        fetched = {question: self._known[question] for question in alike if question in self._known}
        if len(fetched) == len(alike):
            return fetched
        fault = await self._check(alike[0])
        for question in alike:
            if question not in fetched:
                fetched[question] = fault or await self._run(question)
            if isinstance(fetched[question], Refused):
                return dict.fromkeys(alike, fetched[question])
        self._keep(fetched)
        return fetched

    def _keep(self, fetched: Mapping[Question, Fetched]) -> None:
        if len(self._known) + len(fetched) > _KEPT:
            self._known.clear()
        self._known |= {key: one for key, one in fetched.items() if _is_small(one)}

    async def _check(self, question: Question) -> Refused | None:
        outline = await self._fetch(f"EXPLAIN AST {_wrap(question)}", _settings(self._bounds, question))
        if isinstance(outline, Refused):
            return outline
        fault = _find_fault([str(row[0]) for row in outline.rows])
        return Refused(fault) if fault else None

    async def _run(self, question: Question) -> Fetched:
        return await self._fetch(_wrap(question), _settings(self._bounds, question))

    async def _fetch(self, sql: str, settings: Settings) -> Fetched:
        for attempt in range(1, _TRIES + 1):
            try:
                async with self._places:
                    return Rows(tuple(await self._session.fetch(sql, settings)))
            except ClickHouseError as error:
                return Refused(_words(error))
            except PassingError as error:
                if error.code == _READ_ONLY or (attempt == _TRIES and error.code in _OVER_BOUNDS):
                    return Refused(_words(error))
                if attempt == _TRIES:
                    raise
            except Retryable:
                if attempt == _TRIES:
                    raise
            await asyncio.sleep(self._pause)
        raise AssertionError("the last try returns or raises")


def _wrap(question: Question) -> str:
    """As a table of its own it can be one SELECT only; the line's end keeps a comment from swallowing the bracket."""
    return f"SELECT * FROM (\n{question.sql.strip().rstrip(';')}\n)"  # noqa: S608 - the restricted user's rights bound it


def _settings(bounds: Settings, question: Question) -> Settings:
    settings = {**bounds, **{f"param_{name}": value for name, value in question.given}}
    if question.extent in _FILTERS:
        settings["additional_table_filters"] = _render_map(_FILTERS[question.extent])
    return settings


def _words(error: Exception) -> str:
    """What ClickHouse says, without where it is: the same fault has the same words in every run."""
    said = str(error)
    return said[max(0, said.find(_OPENING)) :].removeprefix(_OPENING).strip()[:_REASON]


def _is_small(fetched: Fetched) -> bool:
    return isinstance(fetched, Rows) and sum(len(str(cell)) for row in fetched.rows for cell in row) <= _SMALL


def _find_fault(outline: list[str]) -> str:
    """Say what a statement has that no tile may have, by ClickHouse's own reading of it; empty if nothing."""
    if outline[0] != _ALONE:
        return "it is not one SELECT: a form, a file or settings stand behind it"
    parts = [line.strip() for line in outline]
    if "Set" in parts:
        return "it brings settings of its own"
    if not any(part.startswith("TableIdentifier ") for part in parts):
        return "it reads no table"
    return ""


def _render_map(filters: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"'{table}': '{condition}'" for table, condition in filters.items()) + "}"
