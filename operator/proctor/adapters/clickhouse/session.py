"""A plain line to a ClickHouse for seeding: statements in, rows out, foreign errors translated once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.errors import Retryable, Terminal

Settings = Mapping[str, int | str]

_MESSAGE_LIMIT = 600
_STATEMENT_SECONDS = 3600
"""One INSERT of a slow, shared ClickHouse; the wait ends at once when the connection does."""

_COMMON: dict[str, int | str] = {
    # A statement carries the fleet and its look-up tables as literals.
    "max_query_size": 64 << 20,
    "max_ast_elements": 5_000_000,
    "max_expanded_ast_elements": 5_000_000,
    # Digests and partitions must not depend on where the server thinks it stands.
    "session_timezone": "UTC",
}


class SqlSession(Protocol):
    """What runs statements."""

    async def run(self, sql: str, settings: Settings | None = None) -> None:
        """Run a statement that returns nothing."""
        ...

    async def fetch(self, sql: str, settings: Settings | None = None) -> list[tuple[object, ...]]:
        """Return a query's rows; 64-bit integers as text, so that none loses digits."""
        ...


class HttpSession:
    """Statements over HTTP, several at once if asked from several tasks.

    Args:
        client: a clickhouse-connect asynchronous client.
        place: whom errors name.
    """

    def __init__(self, client: Any, place: str) -> None:  # noqa: ANN401 - the client's package has no types
        self._client = client
        self._place = place

    async def run(self, sql: str, settings: Settings | None = None) -> None:
        """Run a statement that returns nothing.

        Raises:
            Retryable: the server could not be reached, or went away.
            Terminal: the server refused the statement.
        """
        await self._send(sql, settings, None)

    async def fetch(self, sql: str, settings: Settings | None = None) -> list[tuple[object, ...]]:
        """Return a query's rows.

        Raises:
            Retryable: the server could not be reached, or went away.
            Terminal: the server refused the query.
        """
        body = await self._send(sql, settings, "JSONCompactEachRow")
        return [tuple(json.loads(line)) for line in body.splitlines() if line.strip()]

    async def _send(self, sql: str, settings: Settings | None, fmt: str | None) -> bytes:
        from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError

        chosen = {"output_format_json_quote_64bit_integers": 1, **_COMMON, **(settings or {})}
        try:
            return bytes(await self._client.raw_query(sql, settings=chosen, fmt=fmt))
        except OperationalError as error:
            raise Retryable(f"ClickHouse {self._place}: no answer to {sql[:60]!r}: {_cut(error)}") from error
        except DatabaseError as error:
            raise Terminal(f"ClickHouse {self._place}: refused {sql[:60]!r}: {_cut(error)}") from error
        except OSError as error:
            raise Retryable(f"ClickHouse {self._place}: went away during {sql[:60]!r}: {_cut(error)}") from error


@asynccontextmanager
async def open_session(endpoint: Endpoint) -> AsyncIterator[HttpSession]:
    """Connect to a ClickHouse.

    Raises:
        Retryable: it could not be reached.
        Terminal: it refused the user.
    """
    import clickhouse_connect
    from clickhouse_connect.driver.exceptions import ClickHouseError

    try:
        client = await clickhouse_connect.get_async_client(
            host=endpoint.host,
            port=endpoint.port,
            username=endpoint.user,
            password=endpoint.password,
            database=endpoint.database,
            secure=endpoint.secure,
            autogenerate_session_id=False,
            send_receive_timeout=_STATEMENT_SECONDS,
            compress=False,
        )
    except ClickHouseError as error:
        raise Terminal(f"ClickHouse {endpoint}: refused the connection: {_cut(error)}") from error
    except OSError as error:
        raise Retryable(f"ClickHouse {endpoint}: can't be reached: {_cut(error)}") from error
    try:
        yield HttpSession(client, str(endpoint))
    finally:
        await client.close()


def _cut(error: BaseException) -> str:
    text = str(error)
    return text if len(text) <= _MESSAGE_LIMIT else f"{text[:_MESSAGE_LIMIT]}…"
