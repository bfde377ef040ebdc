"""One run at a time on a data dir: others wait in line and say for whom."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from proctor.local.durable import translate_data_dir_error, translate_os_error

_POLL_SECONDS = 0.25
"""A lock that may be awaited and interrupted: the kernel's blocking call could not be cancelled."""

_MAX_HOLDER = 200


@asynccontextmanager
async def hold_data_dir(
    data_dir: Path, name: str, on_wait: Callable[[str], None], stop: asyncio.Event
) -> AsyncIterator[bool]:
    """Hold the data dir's lock; the kernel lets go of it when this process dies, however it dies.

    Args:
        data_dir: created if missing.
        name: who holds it, shown to those that wait.
        on_wait: called with the holder's name when there is one to wait for, and when it changes.
        stop: ends the waiting.

    Yields:
        Whether it is held; False if the waiting was ended.

    Raises:
        InvalidInput: there can be no such folder, or it is not this user's.
        Terminal: the lock file can't be opened.
    """
    path = data_dir / "lock"
    try:
        os.makedirs(data_dir, exist_ok=True)  # noqa: PTH103 - one call to the kernel; nothing waits for it
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as e:
        raise translate_data_dir_error(e, data_dir, f"opening {path}") from e
    try:
        is_held = await _acquire(descriptor, on_wait, stop)
        if is_held:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, name.encode()[:_MAX_HOLDER], 0)
        yield is_held
    finally:
        os.close(descriptor)


def note_holder(data_dir: Path, name: str) -> None:
    """Say in the lock what its holder, this process, is at work on now.

    Raises:
        Terminal: it can't be written.
    """
    path = data_dir / "lock"
    try:
        path.write_bytes(name.encode()[:_MAX_HOLDER])
    except OSError as e:
        raise translate_os_error(e, f"writing {path}") from e


def read_holder(data_dir: Path) -> str | None:
    """Return what the lock's holder is at work on; None if nobody holds it."""
    try:
        descriptor = os.open(data_dir / "lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(descriptor, _MAX_HOLDER, 0).decode("utf-8", "replace")
    else:
        return None
    finally:
        os.close(descriptor)


async def _acquire(descriptor: int, on_wait: Callable[[str], None], stop: asyncio.Event) -> bool:
    told: str | None = None
    while not stop.is_set():
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, _MAX_HOLDER, 0).decode("utf-8", "replace") or "another run"
            if holder != told:
                told = holder
                on_wait(holder)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _POLL_SECONDS)
        else:
            return True
    return False
