"""Work on what a process has in memory, done by copies of that process: one for each core that it may use."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")

_CHUNKS = 4
"""Per process, so that one with the lighter half of the work takes some of the other's."""

_inherited: list[Callable[[int], Any]] = []


def spread_over_forks(work: Callable[[int], ResultT], numbers: Sequence[int]) -> Iterable[ResultT]:
    """Like `map`, over several processes; whatever `work` refers to is theirs too, for it is nowhere sent.

    Args:
        work: what to do with a number; its result is pickled, it is not.
        numbers: what to do it with.
    """
    count = min(len(os.sched_getaffinity(0)), len(numbers))
    if count < 2:  # noqa: PLR2004 - a process by itself has nobody to share with
        return map(work, numbers)
    with ProcessPoolExecutor(count, multiprocessing.get_context("fork"), _inherited.append, (work,)) as pool:
        return list(pool.map(_work, numbers, chunksize=max(1, len(numbers) // (count * _CHUNKS))))


def _work(number: int) -> Any:  # noqa: ANN401 - of whatever work it is
    return _inherited[-1](number)
