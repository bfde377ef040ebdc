"""Work on what a process has in memory, done by copies of that process: one for each core that it may use."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from proctor.errors import Terminal
from proctor.local.children import die_with_parent

ResultT = TypeVar("ResultT")


async def spread_over_forks(work: Callable[[int], ResultT], numbers: Sequence[int]) -> list[ResultT]:
    """Return what `work` makes of each number, in order; whatever it refers to is inherited, for it is nowhere sent.

    No other thread may be at work when this is called: what it holds locked would stay locked in the copies. Cancelled,
    it leaves no copy behind; killed, neither.

    Args:
        work: what to do with a number; its result is pickled, it is not.
        numbers: what to do it with; neighbours go to different copies, so that these share heavy stretches.

    Raises:
        Terminal: a copy ended before its work was done.
    """
    count = min(len(os.sched_getaffinity(0)), len(numbers))
    results: list[Any] = [None] * len(numbers)
    copies: list[_Copy] = []
    try:
        copies += [_Copy.begin(work, numbers[first::count]) for first in range(count)]
        for first, share in enumerate(await asyncio.gather(*(copy.results() for copy in copies))):
            results[first::count] = share
    finally:
        for copy in copies:
            copy.end()
    return results


@dataclass(frozen=True, slots=True)
class _Copy:
    """A copy of this process, and where it says what it made, or why it could not."""

    process: BaseProcess
    receiver: Connection

    @classmethod
    def begin(cls, work: Callable[[int], Any], share: Sequence[int]) -> _Copy:
        context = multiprocessing.get_context("fork")
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(work, share, sender), daemon=True)
        process.start()
        sender.close()  # so that its end is heard here
        return cls(process, receiver)

    async def results(self) -> list[Any]:
        try:
            made = await asyncio.to_thread(self.receiver.recv)
        except EOFError as error:
            self.process.join()
            raise Terminal(
                f"a process that shared the work ended before it was done: {self._describe_end()}"
            ) from error
        if isinstance(made, BaseException):
            raise made
        return list(made)

    def end(self) -> None:
        self.process.kill()
        self.process.join()

    def _describe_end(self) -> str:
        code = self.process.exitcode or 0
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _work(work: Callable[[int], Any], share: Sequence[int], sender: Connection) -> None:
    die_with_parent()
    # A terminal's Ctrl-C comes to all of its processes; whoever waits for this one ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        made: object = [work(number) for number in share]
    except Exception as error:  # noqa: BLE001 - the entry point of a process: whoever waits for it raises it again
        made = error
    sender.send(made)
