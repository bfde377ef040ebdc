"""Work shared by copies of a process: whole, in order, and nothing left behind."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import time

import pytest

from proctor.errors import Retryable, Terminal
from proctor.local.forks import spread_over_forks


def test_work_sees_what_its_process_had_in_memory() -> None:
    """Report: what is worked on is inherited, never sent; results come back in order, from other processes."""
    unsendable = {number: (lambda number=number: number**2) for number in range(50)}
    done = asyncio.run(spread_over_forks(lambda number: (unsendable[number](), os.getpid()), range(50)))
    assert [square for square, _ in done] == [number**2 for number in range(50)]
    assert os.getpid() not in {pid for _, pid in done}


def test_work_may_wait_for_others() -> None:
    """Report: each process asks the store itself, though its parent was in the middle of a loop."""

    async def answer(number: int) -> int:
        return await asyncio.to_thread(lambda: number + 1)

    assert asyncio.run(spread_over_forks(lambda number: asyncio.run(answer(number)), range(5))) == [1, 2, 3, 4, 5]
    assert asyncio.run(spread_over_forks(lambda number: number, [])) == []


def test_a_fault_in_the_work_is_the_callers() -> None:
    """Report: an error in another process is raised here, as what it is."""

    def fail(number: int) -> None:
        raise Retryable(f"store {number}: no answer")

    with pytest.raises(Retryable, match="store 0: no answer"):
        asyncio.run(spread_over_forks(fail, range(1)))


def test_a_process_that_is_killed_is_an_error_that_says_so() -> None:
    """P28: killed for want of memory, it neither hangs nor leaves a page without its cells; the others end too."""

    def die(number: int) -> None:
        if number == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(600)

    with pytest.raises(Terminal, match="killed by SIGKILL"):
        asyncio.run(spread_over_forks(die, range(4)))
    assert not multiprocessing.active_children()


def test_cancelled_it_leaves_no_process() -> None:
    """Report: Ctrl-C ends it at once, whatever its processes wait for."""

    async def begin_and_cancel() -> None:
        spreading = asyncio.create_task(spread_over_forks(lambda _: time.sleep(600), range(4)))
        await asyncio.sleep(0)
        assert multiprocessing.active_children()
        spreading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await spreading

    asyncio.run(begin_and_cancel())
    assert not multiprocessing.active_children()
