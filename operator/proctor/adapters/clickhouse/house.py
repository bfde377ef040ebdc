"""Client of a house: the process that keeps embedded engines in a cluster, seeds datasets in them and serves them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from decimal import Decimal
from http import HTTPStatus
from typing import Any, NamedTuple

from proctor.adapters.wire import ConnectError, CutError, Response, Wire
from proctor.clock import format_instant
from proctor.core.digests import canonical_json
from proctor.core.seeding.record import DatasetRecord
from proctor.errors import Retryable, Terminal

_CONNECT_SECONDS = 10.0
_SILENT_SECONDS = 60.0
"""A house that seeds shows every few seconds that it lives."""

_MAX_LINE = 4 * 1024 * 1024


class SeedOrderTexts(NamedTuple):
    """A dataset to seed, with its documents as text: the house need not have them.

    Attributes:
        scenario: the scenario's name, for people.
        recipe: recipe.yaml.
        answer: answer.yaml; None if no facts are wanted.
        variants: variants.yaml; None if there is none.
        seed: the seed.
        anchor: the anchor.
        volume: the share of the background's rows.
    """

    scenario: str
    recipe: str
    answer: str | None
    variants: str | None
    seed: int
    anchor: datetime
    volume: Decimal


class Served(NamedTuple):
    """Where a dataset is served."""

    port: int
    database: str


class HouseClient:
    """Speaks to a house's control port.

    Args:
        host: of the house.
        port: its control port.
        password: the administrator's.
    """

    def __init__(self, host: str, port: int, password: str) -> None:
        authority = f"[{host}]" if ":" in host else host
        self._wire = Wire(f"http://{authority}:{port}", connect_seconds=_CONNECT_SECONDS)
        self._headers = {"authorization": f"Bearer {password}", "content-type": "application/json"}

    def close(self) -> None:
        """Close connections."""
        self._wire.close()

    async def seed(self, order: SeedOrderTexts, on_line: Callable[[Any], None] = lambda _: None) -> DatasetRecord:
        """Build a dataset unless it is there.

        Args:
            order: what to build.
            on_line: takes what the house says on the way.

        Raises:
            Retryable: the house went away, or says that another try may help.
            Terminal: it says that none can.
        """
        body = order._asdict() | {"anchor": format_instant(order.anchor), "volume": str(order.volume)}
        async with self._ask("POST", "/datasets", body) as response:
            async for line in _lines(response):
                if "record" in line:
                    return DatasetRecord.model_validate(line["record"])
                if "error" in line:
                    raise _to_error(line)
                on_line(line)
        raise Retryable("seeding in the house: it ended without a word")

    async def serve(self, dataset: str, *, user: str, password: str, until: datetime) -> Served:
        """Let a user query one dataset and nothing else, for some time; asking again changes nothing.

        Args:
            dataset: its hash.
            user: who may; one dataset each.
            password: the user's.
            until: when that ends.

        Raises:
            Retryable: the house is away.
            Terminal: it refuses.
        """
        body = {"hash": dataset, "user": user, "password": password, "until": format_instant(until)}
        async with self._ask("POST", "/served", body) as response:
            async for line in _lines(response):
                if "error" in line:
                    raise _to_error(line)
                return Served(int(line["port"]), str(line["database"]))
        raise Retryable("asking the house to serve a dataset: it gave no answer")

    async def drop(self, user: str) -> None:
        """Stop serving a user; nothing happens if it is not served.

        Raises:
            Retryable: the house is away.
            Terminal: it refuses.
        """
        async with self._ask("DELETE", f"/served/{user}", {}) as response:
            async for line in _lines(response):
                if "error" in line:
                    raise _to_error(line)

    @asynccontextmanager
    async def _ask(self, method: str, path: str, body: object) -> AsyncIterator[Response]:
        attempted = f"asking the house for {method} {path}"
        try:
            async with self._wire.exchange(
                method, path, self._headers, body=canonical_json(body), idle_seconds=_SILENT_SECONDS
            ) as response:
                if response.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND}:
                    raise Terminal(f"{attempted}: it answers {response.status}: is that the house, and its password?")
                yield response
        except (ConnectError, CutError, ValueError, KeyError) as error:
            raise Retryable(f"{attempted}: {error or type(error).__name__}") from error


async def _lines(response: Response) -> AsyncIterator[dict[str, Any]]:
    """Yield the JSON lines of a response, of which none may be endless."""
    rest = b""
    async for piece in response.pieces():
        rest += piece
        *whole, rest = rest.split(b"\n")
        for line in whole:
            yield _parse(line)
        if len(rest) > _MAX_LINE:
            raise Terminal(f"reading from the house: a line is longer than {_MAX_LINE} bytes")
    if rest:
        yield _parse(rest)


def _parse(line: bytes) -> dict[str, Any]:
    value = json.loads(line)
    if not isinstance(value, dict):
        raise Terminal("reading from the house: a line is no JSON object")
    return value


def _to_error(line: dict[str, Any]) -> Retryable | Terminal:
    message = f"the house: {str(line['error'])[:1000]}"
    return Retryable(message) if line.get("retryable") is True else Terminal(message)
