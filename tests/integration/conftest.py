"""No test waits for ever, and none leaves its dead for the next."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from support.local_runs import reap_orphans

_SECONDS = 240
"""Less than the time after which the whole process is ended with the stacks of its threads: a wait that has a name is
one failed test, and the rest are run."""

_SHARED = "tests/integration/local/"
"""One data dir and one undisturbed run serve all files of this folder: one worker has them all."""

_LONG = ("local", "operator", "seeding", "runtimes", "sandbox", "agents", "mcp", "results", "report", "house")
"""Folders whose files take longest, the longest first: what starts last must be short, or one worker ends alone."""

_ended: list[frozenset[int]] = [frozenset()]


class FolderScheduling(LoadFileScheduling):  # type: ignore[misc]
    """Gives each worker whole files, and the files that share what is made once to the same one."""

    def _split_scope(self, nodeid: str) -> str:
        return _SHARED if nodeid.startswith(_SHARED) else str(super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FolderScheduling:
    return FolderScheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent

    def rank(item: pytest.Item) -> int:
        folder = item.path.parent.name
        return _LONG.index(folder) if here in item.path.parents and folder in _LONG else len(_LONG)

    items.sort(key=rank)  # stable: within a file the order stays
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
