"""A client of ClickHouse whose failures say what happens next.

The driver is imported when a client is made: it costs over a second of processor time, and many commands need none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Self

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.rowbinary import encode_rows
from proctor.errors import InvalidInput, ProctorError, Retryable, Terminal

if TYPE_CHECKING:
    from clickhouse_connect.driver.asyncclient import AsyncClient

Row = tuple[Any, ...]
Settings = Mapping[str, str | int | float]

_CONNECT_SECONDS = 5
_MESSAGE_CHARS = 600

_PASSING_CODES = frozenset({
    3,  # unexpected end of file, of a request that was cut
    159,  # timeout exceeded
    164,  # read-only, while a replicated table has lost its keeper
    202,  # too many simultaneous queries
    209,  # socket timeout
    210,  # network error
    225,  # no keeper
    236,  # aborted: the server is stopping
    241,  # memory limit
    242,  # table is read-only, as 164
    243,  # not enough space
    252,  # too many parts: merges are behind
    285,  # too few live replicas
    319,  # unknown status of insert
    394,  # query was cancelled, by the server's stop
    425,  # system error of the file system
    999,  # keeper exception
})  # fmt: skip
"""Codes of ClickHouse that say nothing against the request: the same one may succeed later."""

_FULL = "No space left on device"
"""Comes under codes that elsewhere mean a broken disk; whoever makes room gets the same rows."""


class ClickHouseError(Terminal):
    """ClickHouse refused a request that no repetition can save.

    Args:
        message: what was attempted, and ClickHouse's answer.
        code: ClickHouse's number for it; None where it gave none.
    """

    def __init__(self, message: str, *, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class Client:
    """One connection pool to one ClickHouse as one user; get one from `connect`.

    Every method raises `Retryable` if the same call may succeed later (ClickHouse away, busy, out of memory or space)
    and `ClickHouseError`, a `Terminal`, if it never will.
    """

    def __init__(self, driver: AsyncClient, endpoint: Endpoint) -> None:
        self._driver = driver
        self._endpoint = endpoint

    @classmethod
    async def connect(cls, endpoint: Endpoint, *, settings: Settings | None = None, timeout_seconds: int = 300) -> Self:
        """Open a client and learn the server's version.

        Args:
            endpoint: where, and as whom.
            settings: ClickHouse settings of every request.
            timeout_seconds: how long one request may stay silent.
        """
        import clickhouse_connect

        with _translated(f"ClickHouse {endpoint}: connecting"):
            driver = await clickhouse_connect.get_async_client(
                host=endpoint.host,
                port=endpoint.port,
                username=endpoint.user,
                password=endpoint.password,
                database=endpoint.database,
                secure=endpoint.secure,
                settings=dict(settings or {}),
                connect_timeout=_CONNECT_SECONDS,
                send_receive_timeout=timeout_seconds,
                tz_mode="aware",
                tz_source="server",
            )
            return cls(driver, endpoint)

    @property
    def endpoint(self) -> Endpoint:
        """Where it is connected."""
        return self._endpoint

    @property
    def driver(self) -> AsyncClient:
        """The driver's client, for what this class doesn't cover; its exceptions are the driver's own."""
        return self._driver

    async def rows(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        settings: Settings | None = None,
        text_as_bytes: bool = False,
    ) -> list[Row]:
        """Run a query with ``{name:Type}`` parameters; return its rows.

        Instants come back aware, in UTC; text as ``str``, or as the stored bytes if so asked.
        """
        formats = {"String": "bytes"} if text_as_bytes else None
        with _translated(f"ClickHouse {self._endpoint}: query {_first_line(sql)!r}"):
            result = await self._driver.query(
                sql, parameters=dict(parameters or {}), settings=dict(settings or {}), query_formats=formats
            )
            return [tuple(row) for row in result.result_rows]

    async def execute(
        self, sql: str, parameters: Mapping[str, Any] | None = None, *, settings: Settings | None = None
    ) -> None:
        """Run a statement that returns no rows: DDL, ``INSERT … SELECT``, ``KILL``."""
        with _translated(f"ClickHouse {self._endpoint}: statement {_first_line(sql)!r}"):
            await self._driver.command(sql, parameters=dict(parameters or {}), settings=dict(settings or {}))

    async def insert(
        self,
        table: str,
        rows: Sequence[Sequence[Any]],
        *,
        columns: Sequence[str],
        types: Sequence[str],
        settings: Settings | None = None,
    ) -> None:
        """Insert rows of the types that `rowbinary` knows; one call is one block, stored whole or not at all."""
        if not rows:
            return
        body = encode_rows(rows, types)
        with _translated(f"ClickHouse {self._endpoint}: inserting {len(rows)} rows into {table}"):
            await self._driver.raw_insert(
                table, list(columns), body, settings=dict(settings or {}), fmt="RowBinary", compression=None
            )

    async def close(self) -> None:
        """Close every connection."""
        await self._driver.close()


@asynccontextmanager
async def open_client(
    endpoint: Endpoint, *, settings: Settings | None = None, timeout_seconds: int = 300
) -> AsyncIterator[Client]:
    """Connect for the length of a block."""
    client = await Client.connect(endpoint, settings=settings, timeout_seconds=timeout_seconds)
    try:
        yield client
    finally:
        await client.close()


@contextmanager
def _translated(attempt: str) -> Iterator[None]:
    """Turn the driver's exceptions into ours."""
    import aiohttp
    from clickhouse_connect.driver.exceptions import ClickHouseError as DriverError
    from clickhouse_connect.driver.exceptions import DataError

    try:
        yield
    except ProctorError:
        raise
    except DataError as error:
        raise InvalidInput(f"{attempt}: {_shown(error)}") from error
    except DriverError as error:
        code = getattr(error, "code", None)
        if code in _PASSING_CODES or _FULL in str(error) or (code is None and _is_transport(error)):
            raise Retryable(f"{attempt}: {_shown(error)}") from error
        raise ClickHouseError(f"{attempt}: {_shown(error)}", code=code) from error
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        raise Retryable(f"{attempt}: {_shown(error) or type(error).__name__}") from error


def _is_transport(error: BaseException) -> bool:
    """Whether a failure without a code happened on the way, and not in the driver's own checks of its arguments."""
    from clickhouse_connect.driver.exceptions import OperationalError

    return isinstance(error, OperationalError)


def _shown(error: BaseException) -> str:
    text = str(error).strip()
    return text if len(text) <= _MESSAGE_CHARS else text[:_MESSAGE_CHARS] + "…"


def _first_line(sql: str) -> str:
    line = sql.strip().partition("\n")[0]
    return line if len(line) <= 80 else line[:80] + "…"  # noqa: PLR2004 - enough to recognise a statement
