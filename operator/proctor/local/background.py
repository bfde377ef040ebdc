"""Work that goes on beside the passes; a mistake in it ends the run loudly instead of getting lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_Outcome = TypeVar("_Outcome")


class Background:
    """Keeps tasks.

    Args:
        notify: called whenever one ends.
    """

    def __init__(self, notify: Callable[[], None]) -> None:
        self.notify = notify
        self._tasks: set[asyncio.Task[Any]] = set()
        self._failed: BaseException | None = None

    def spawn(self, work: Coroutine[Any, Any, _Outcome]) -> asyncio.Task[_Outcome]:
        """Begin something."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_end)
        return task

    def check(self) -> None:
        """Raise what a task did not handle, if any."""
        if self._failed is not None:
            raise self._failed

    async def drain(self) -> None:
        """Wait until nothing goes on any more."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def cancel(self) -> None:
        """Cancel everything, and wait for it."""
        for task in self._tasks:
            task.cancel()
        await self.drain()

    def _note_end(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None and self._failed is None:
            self._failed = task.exception()
        self.notify()
