"""A client of ClickHouse over plain HTTP whose failures say what happens next.

Ours, and no driver: a driver costs half a second of processor time to import, in each of three processes of a run, and
more for each request than the few statements of the results store do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

from proctor.adapters.clickhouse.answers import check_answer, read_rows
from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.rowbinary import encode_rows
from proctor.adapters.clickhouse.rowjson import EXACT, FORM, Parameters, Row, name_parameters
from proctor.adapters.wire import ConnectError, CutError, Wire
from proctor.errors import Retryable

Settings = Mapping[str, str | int]

_CONNECT_SECONDS = 5.0

_COMMON: Settings = {
    # An error in the middle must not look like a short answer.
    "wait_end_of_query": 1,
    **EXACT,
}


class Client:
    """Connections to one ClickHouse as one user, opened when they are needed and used again.

    Args:
        endpoint: where, and as whom; an empty database is the user's own.
        settings: ClickHouse settings of every request.
        timeout_seconds: how long one request may stay silent.

    Every method raises `Retryable` if the same call may succeed later (ClickHouse away, busy, out of memory or space)
    and `ClickHouseError`, a `Terminal`, if it never will.
    """

    def __init__(self, endpoint: Endpoint, *, settings: Settings | None = None, timeout_seconds: float = 300) -> None:
        self._endpoint = endpoint
        self._settings = {
            **_COMMON,
            **({"database": endpoint.database} if endpoint.database else {}),
            **(settings or {}),
        }
        self._timeout_seconds = timeout_seconds
        self._headers = {"Authorization": endpoint.authorization}
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        scheme = "https" if endpoint.secure else "http"
        self._wire = Wire(f"{scheme}://{host}:{endpoint.port}", connect_seconds=_CONNECT_SECONDS)

    async def rows(self, sql: str, parameters: Parameters | None = None) -> list[Row]:
        """Run a query with ``{name:Type}`` parameters; return its rows as JSON has them.

        Instants come back as ISO text, decimals as text; what was no Unicode comes back as lone surrogates.
        """
        settings = {"default_format": FORM, **name_parameters(parameters or {})}
        what = f"query {_first_line(sql)!r}"
        return read_rows(self._name(what), await self._ask(what, sql.encode(), settings))

    async def execute(self, sql: str, parameters: Parameters | None = None) -> None:
        """Run a statement that returns no rows: DDL, ``INSERT … SELECT``, ``KILL``."""
        await self._ask(f"statement {_first_line(sql)!r}", sql.encode(), name_parameters(parameters or {}))

    async def insert(
        self, table: str, rows: Sequence[Sequence[Any]], *, columns: Sequence[str], types: Sequence[str]
    ) -> None:
        """Insert rows of the types that `rowbinary` knows; one call is one block, stored whole or not at all."""
        if not rows:
            return
        names = ", ".join(f"`{name}`" for name in columns)
        statement = f"INSERT INTO {table} ({names}) FORMAT RowBinary"
        await self._ask(f"inserting {len(rows)} rows into {table}", encode_rows(rows, types), {"query": statement})

    async def close(self) -> None:
        """Close every connection."""
        self._wire.close()

    async def _ask(self, attempt: str, body: bytes, settings: Settings) -> bytes:
        what = self._name(attempt)
        path = f"/?{urlencode({**self._settings, **settings})}"
        try:
            async with self._wire.exchange(
                "POST", path, self._headers, body=body, idle_seconds=self._timeout_seconds
            ) as response:
                answer = b"".join([piece async for piece in response.pieces()])
        except ConnectError as error:
            raise Retryable(f"{what}: connecting: {error or 'nobody answers'}") from error
        except CutError as error:
            raise Retryable(f"{what}: {error or 'no answer in time'}") from error
        check_answer(what, response.status, response.headers.get("x-clickhouse-exception-code", ""), answer)
        return answer

    def _name(self, attempt: str) -> str:
        return f"ClickHouse {self._endpoint}: {attempt}"


@asynccontextmanager
async def open_client(
    endpoint: Endpoint, *, settings: Settings | None = None, timeout_seconds: float = 300
) -> AsyncIterator[Client]:
    """Open a client for the length of a block."""
    client = Client(endpoint, settings=settings, timeout_seconds=timeout_seconds)
    try:
        yield client
    finally:
        await client.close()


def _first_line(sql: str) -> str:
    line = sql.strip().partition("\n")[0]
    return line if len(line) <= 80 else line[:80] + "…"  # noqa: PLR2004 - enough to recognise a statement
