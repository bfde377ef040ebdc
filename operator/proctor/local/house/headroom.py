"""Whether another engine finds processes enough: a pod's limit counts threads, and can't be read from inside."""

from __future__ import annotations

import threading

_THREADS = 64
"""Of an engine at work. One that gets fewer fails, and takes from the results engine what that needs."""


def has_room(threads: int = _THREADS) -> bool:
    """Tell whether so many more threads can be had, by having them for a moment."""
    over = threading.Event()
    waiting: list[threading.Thread] = []
    try:
        for _ in range(threads):
            thread = threading.Thread(target=over.wait, daemon=True)
            thread.start()
            waiting.append(thread)
    except RuntimeError:
        return False
    finally:
        over.set()
        for thread in waiting:
            thread.join()
    return True
