"""One loop per object: a pass when something happened, no more than one a second, and patience after a failure."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from proctor.errors import InvalidInput, Retryable, Terminal

logger = logging.getLogger(__name__)

PASS_SECONDS = 1.0
"""A pass at most so often, and while something is going on at least: deadlines and agents come without an event."""
_LONGEST_DELAY = 30.0
_MOST_DOUBLINGS = 3
"""After which it is tried at a steady pace: what failed may be back at any moment."""

Key = tuple[str, str]
"""Namespace and name."""
MakePass = Callable[[], Awaitable[bool]]
"""Makes a pass; tells whether another one is needed, though nothing else happens."""


@dataclass(frozen=True, slots=True)
class Driven:
    """What a loop drives.

    Attributes:
        make_pass: makes one pass.
        close: lets go of what it holds.
    """

    make_pass: MakePass
    close: Callable[[], Awaitable[None]]


@dataclass(slots=True)
class _Loop:
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Loops:
    """The loops of one kind of objects.

    Args:
        kind: for the log.
        begin: returns what drives an object, given its key and what wakes its loop.
        seconds: between two passes.
    """

    def __init__(self, kind: str, begin: Callable[[Key, Callable[[], None]], Driven], *, seconds: float) -> None:
        self._kind = kind
        self._begin = begin
        self._seconds = seconds
        self._loops: dict[Key, _Loop] = {}

    @property
    def waiting(self) -> int:
        """How many objects wait for a pass."""
        return sum(1 for loop in self._loops.values() if loop.woken.is_set())

    def wake(self, key: Key) -> None:
        """Ask for a pass over an object."""
        loop = self._loops.get(key)
        if loop is None:
            loop = self._loops[key] = _Loop()
            loop.task = asyncio.create_task(self._drive(key, loop), name=f"{self._kind} {key[0]}/{key[1]}")
        loop.woken.set()

    async def close(self) -> None:
        """End every loop, wherever it is: what it was about to do, a later one does."""
        tasks = [loop.task for loop in self._loops.values() if loop.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _drive(self, key: Key, loop: _Loop) -> None:
        driven = self._begin(key, loop.woken.set)
        try:
            failures = 0
            again = True
            while again or loop.woken.is_set():
                loop.woken.clear()
                began = time.monotonic()
                again, delay, failures = await self._try(key, driven, failures)
                if again:
                    await self._rest(loop, delay)
                await asyncio.sleep(max(0.0, began + self._seconds - time.monotonic()))
        finally:
            # Before anything is awaited: who wakes it from here on gets a new loop.
            if self._loops.get(key) is loop:
                del self._loops[key]
            await driven.close()

    async def _try(self, key: Key, driven: Driven, failures: int) -> tuple[bool, float, int]:
        """Make a pass; return whether another is needed, after how long, and how many failed in a row."""
        where = {"run": f"{key[0]}/{key[1]}"}
        try:
            return await driven.make_pass(), 0.0, 0
        except Retryable as error:
            delay = min(error.delay * 2**failures, _LONGEST_DELAY)
            logger.info("a pass has to be tried again", extra=where | {"problem": str(error), "seconds": delay})
            return True, delay, min(failures + 1, _MOST_DOUBLINGS)
        except (Terminal, InvalidInput) as error:
            logger.error("a pass can't be made", extra=where | {"problem": str(error)})  # noqa: TRY400 - says where
        except Exception:
            # One object that nobody foresaw must not end the passes over all others.
            logger.exception("a pass failed by a mistake of the operator", extra=where)
        return True, _LONGEST_DELAY, failures

    @staticmethod
    async def _rest(loop: _Loop, delay: float) -> None:
        if delay > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await loop.woken.wait()
