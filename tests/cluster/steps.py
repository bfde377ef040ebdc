"""Steps that say what they do and how long it took."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cluster.faults import ClusterError


@contextmanager
def step(title: str) -> Iterator[None]:
    """Print the title, then the seconds that the body took."""
    started = time.monotonic()
    print(f"  {title} …", file=sys.stderr, flush=True)
    yield
    print(f"  {title}: {time.monotonic() - started:.1f} s", file=sys.stderr, flush=True)


def wait_for(what: str, holds: Callable[[], bool], *, seconds: float, hint: str) -> None:
    """Ask until the answer is yes.

    Raises:
        ClusterError: it was not in time; the hint says where to look.
    """
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise ClusterError(f"{what}: not within {seconds:.0f} s; see {hint}")
        time.sleep(0.1)
