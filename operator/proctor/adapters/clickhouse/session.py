"""A plain line to a ClickHouse for seeding: statements in, rows out.

Standard library only, each statement in a thread: seeding sends a few dozen long ones and reads single rows, and what
keeps connections for many short requests (`client`) is not worth its imports where a small dataset has five seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import ssl
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlencode

from proctor.adapters.clickhouse.answers import check_answer, read_rows, tells_full_disk
from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.rowjson import FORM
from proctor.errors import DiskFull, Retryable

Settings = Mapping[str, int | str]

_SHOWN_SIGNS = 60
_STATEMENT_SECONDS = 3600.0
"""One INSERT of a slow, shared ClickHouse; the wait ends at once when the connection does."""

_COMMON: dict[str, int | str] = {
    # A statement carries the fleet and its look-up tables as literals.
    "max_query_size": 64 << 20,
    "max_ast_elements": 5_000_000,
    "max_expanded_ast_elements": 5_000_000,
    # Neither digests nor partitions may depend on where the server thinks it stands.
    "session_timezone": "UTC",
    "output_format_json_quote_64bit_integers": 1,
    # An error in the middle must not look like a short answer.
    "wait_end_of_query": 1,
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
    """Statements over HTTP; several at once if asked from several tasks.

    Args:
        endpoint: the ClickHouse and the user.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def run(self, sql: str, settings: Settings | None = None) -> None:
        """Run a statement that returns nothing.

        Raises:
            Retryable: the server could not be reached, went away, or can't do it now.
            DiskFull: it has no room.
            Terminal: the server refused the statement.
        """
        await self._send(sql, settings or {}, "TabSeparated")

    async def fetch(self, sql: str, settings: Settings | None = None) -> list[tuple[object, ...]]:
        """Return a query's rows.

        Raises:
            Retryable: the server could not be reached, went away, or can't do it now.
            Terminal: the server refused the query.
        """
        return read_rows(self._name(sql), await self._send(sql, settings or {}, FORM))

    async def _send(self, sql: str, settings: Settings, form: str) -> bytes:
        statement = _Statement(self._connect())
        try:
            status, code, body = await asyncio.to_thread(statement.exchange, *self._word(sql, settings, form))
        except (OSError, http.client.HTTPException) as error:
            raise Retryable(f"{self._name(sql)}: no answer: {error}") from error
        finally:
            statement.give_up()
        if tells_full_disk(status, code, body):
            raise DiskFull(self._name(sql))
        check_answer(self._name(sql), status, code, body)
        return body

    def _name(self, sql: str) -> str:
        return f"ClickHouse {self._endpoint}: {sql[:_SHOWN_SIGNS]!r}"

    def _connect(self) -> http.client.HTTPConnection:
        place = (self._endpoint.host, self._endpoint.port)
        if self._endpoint.secure:
            return http.client.HTTPSConnection(*place, timeout=_STATEMENT_SECONDS, context=ssl.create_default_context())
        return http.client.HTTPConnection(*place, timeout=_STATEMENT_SECONDS)

    def _word(self, sql: str, settings: Settings, form: str) -> tuple[str, bytes, dict[str, str]]:
        query = urlencode({"database": self._endpoint.database, "default_format": form, **_COMMON, **settings})
        return f"/?{query}", sql.encode(), {"Authorization": self._endpoint.authorization}


class _Statement:
    """One statement on a connection of its own: a thread waits for the answer, another may give it up."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._is_given_up = False

    def exchange(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, str, bytes]:
        """Send it, and return status, exception code and answer."""
        with contextlib.closing(self._connection) as connection:
            connection.connect()
            # Looked at once there is a socket, and set before one is looked for: one of the two threads sees the other.
            if self._is_given_up:
                raise ConnectionAbortedError
            connection.request("POST", path, body=body, headers=dict(headers))
            response = connection.getresponse()
            return response.status, response.headers.get("X-ClickHouse-Exception-Code", ""), response.read()

    def give_up(self) -> None:
        """End the thread's wait, if it still waits."""
        self._is_given_up = True
        sock = self._connection.sock
        with contextlib.suppress(OSError):
            if sock is not None:
                sock.shutdown(socket.SHUT_RDWR)
