"""A run's rows in bulk: a page of many attempts a query, over a plain line to any ClickHouse.

Pages are cut by the number of events that the attempts say they have, so memory stays bounded whatever a run's
size, and a page that fails is an error, never a shorter answer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

from proctor.adapters.clickhouse import results_rows as rows
from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.rowjson import EXACT, Parameters, Row, name_parameters
from proctor.adapters.clickhouse.session import HttpSession
from proctor.adapters.clickhouse.tool_figures import CELLS_QUERY, TOOLS_QUERY, parse_figures
from proctor.core.stats.tools import ToolFigures
from proctor.core.trajectory.events import Event
from proctor.core.trajectory.outcome import AttemptRecord

_EVENTS_PER_PAGE = 16_000
"""About 8 MB of rows with previews. Smaller pages cost the store more: each begins and ends within a block of 8,192
rows, which it reads whole."""

_BODY_BYTES_PER_PAGE = 16 << 20
_DIGESTS_PER_QUERY = 1_000

ItemT = TypeVar("ItemT")

_KEY = tuple(name for name, _ in rows.KEY_COLUMNS)
_ORDER = ", ".join(_KEY[1:])


class RunRows:
    """The rows of one database of results.

    Args:
        endpoint: where ClickHouse is; its own default database doesn't matter.
        database: the database with the tables.

    Every method raises `Retryable` while ClickHouse is away or busy, and `Terminal` if it refuses.
    """

    def __init__(self, endpoint: Endpoint, database: str) -> None:
        self._endpoint = replace(endpoint, database=database)
        self._session = HttpSession(self._endpoint)

    async def attempts(self, run: str) -> tuple[AttemptRecord, ...]:
        """Return a run's ended attempts, by cell and attempt."""
        sql = f"SELECT {rows.ATTEMPTS.selected} FROM attempts FINAL WHERE run = {{run:String}} ORDER BY {_ORDER}"  # noqa: S608 - all constants
        found = await self._fetch(sql, {"run": run})
        return tuple(rows.parse_attempt(row) for row in found)

    async def trajectories(
        self, attempts: Sequence[AttemptRecord]
    ) -> AsyncIterator[tuple[AttemptRecord, tuple[Event, ...]]]:
        """Yield attempts with their events, some thousand events in memory at a time.

        Args:
            attempts: of one run, in the order in which `attempts` returns them.
        """
        select = f"SELECT {rows.EVENTS.selected} FROM events FINAL"  # noqa: S608 - all constants
        async for record, found in self._paged(select, attempts):
            yield record, tuple(rows.parse_event(row) for row in found)

    async def tool_figures(self, run: str) -> tuple[ToolFigures, ...]:
        """Return what each tool of each arm showed, over the counting attempt of each cell; controls are left out."""
        tools, cells = [await self._fetch(sql, {"run": run}) for sql in (TOOLS_QUERY, CELLS_QUERY)]
        return parse_figures(tools, cells)

    async def bodies(self, digests: Iterable[str]) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the bodies that are there, each once; those that were never kept, or aged out, are missing.

        Raises:
            Terminal: a body that doesn't have the digest it is stored under.
        """
        wanted = sorted({digest for digest in digests if rows.DIGEST.fullmatch(digest)})
        for start in range(0, len(wanted), _DIGESTS_PER_QUERY):
            sizes = await self._body_sizes(wanted[start : start + _DIGESTS_PER_QUERY])
            for page in _cut(sizes, sizes.__getitem__, _BODY_BYTES_PER_PAGE):
                for row in await self._fetch(rows.select_bodies(page), {}):
                    yield rows.parse_body(row, f"results {self._endpoint}")

    async def _body_sizes(self, digests: Sequence[str]) -> dict[str, int]:
        wanted = rows.list_digests(digests)
        sql = f"SELECT digest, any(size) FROM blobs WHERE digest IN {wanted} GROUP BY digest ORDER BY digest"  # noqa: S608 - hexadecimal digits
        return {str(digest): int(size) for digest, size in await self._fetch(sql, {})}

    async def _paged(
        self, select: str, attempts: Sequence[AttemptRecord]
    ) -> AsyncIterator[tuple[AttemptRecord, list[Row]]]:
        span = f"({_ORDER}) BETWEEN {_tuple('first')} AND {_tuple('last')}"
        sql = f"{select} WHERE run = {{run:String}} AND {span} ORDER BY {_ORDER}, seq"

        def ask(page: list[AttemptRecord]) -> Coroutine[None, None, list[Row]]:
            return self._fetch(sql, {"run": page[0].key.run, **_bound("first", page[0]), **_bound("last", page[-1])})

        async for page, found in _ask_ahead(_cut(attempts, lambda record: record.events, _EVENTS_PER_PAGE), ask):
            by_key = {key: list(group) for key, group in groupby(found, key=itemgetter(*range(len(_KEY))))}
            for record in page:
                yield record, by_key.pop(tuple(record.key.columns.values()), [])

    async def _fetch(self, sql: str, parameters: Parameters) -> list[Row]:
        return await self._session.fetch(sql, {**EXACT, **name_parameters(parameters)})


async def _ask_ahead(
    pages: Iterable[ItemT], ask: Callable[[ItemT], Coroutine[None, None, list[Row]]]
) -> AsyncIterator[tuple[ItemT, list[Row]]]:
    """Yield pages with what was answered; while one of them is made use of, the store looks for the next."""
    asked: deque[tuple[ItemT, asyncio.Task[list[Row]]]] = deque()
    try:
        for page in pages:
            asked.append((page, asyncio.create_task(ask(page))))
            await asyncio.sleep(0)  # or it would only begin once nobody reads
            if len(asked) > 1:
                first, answer = asked.popleft()
                yield first, await answer
        for last, answer in asked:
            yield last, await answer
    finally:
        for _, answer in asked:
            answer.cancel()


def _tuple(side: str) -> str:
    return "(" + ", ".join(f"{{{side}_{name}:{kind}}}" for name, kind in rows.KEY_COLUMNS[1:]) + ")"


def _bound(side: str, record: AttemptRecord) -> dict[str, int | str]:
    return {f"{side}_{name}": value for name, value in record.key.columns.items() if name != "run"}


def _cut(items: Iterable[ItemT], size_of: Callable[[ItemT], int], limit: int) -> Iterator[list[ItemT]]:
    """Cut into pages of at most `limit` in all, or of one item that is larger by itself."""
    page: list[ItemT] = []
    filled = 0
    for item in items:
        size = size_of(item)
        if page and filled + size > limit:
            yield page
            page, filled = [], 0
        page.append(item)
        filled += size
    if page:
        yield page
