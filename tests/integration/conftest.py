"""No test waits for ever, and none leaves its dead for the next."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.local_runs import reap_orphans

_SECONDS = 240
"""Less than the time after which the whole process is ended with the stacks of its threads: a wait that has a name is
one failed test, and the rest are run."""

_ended: list[frozenset[int]] = [frozenset()]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if isinstance(item, pytest.Function) and here in item.path.parents and inspect.iscoroutinefunction(item.obj):
            item.obj = bound(item.obj)


def bound(test: Callable[..., Awaitable[None]], seconds: float = _SECONDS) -> Callable[..., Awaitable[None]]:
    """Let a test fail, with the line at which it waits, once it has waited for so long."""

    @functools.wraps(test)
    async def bounded(*args: Any, **kwargs: Any) -> None:
        clock = asyncio.timeout(seconds)
        try:
            async with clock:
                await test(*args, **kwargs)
        except TimeoutError as error:
            if not clock.expired():
                raise
            raise AssertionError(f"it still waits after {seconds:g} s; above is where") from error

    return bounded


@pytest.fixture(autouse=True)
def _reap() -> Iterator[None]:
    yield
    _ended[0] = reap_orphans(_ended[0])
