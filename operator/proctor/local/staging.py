"""Folders that are built out of sight, and appear whole or not at all.

    .staging-<name>-<attempt>/   being built; its lock is held by whoever builds it
    .lock-<name>                 held while one looks and builds, so that two at once build it once

Locks are the kernel's: it lets go of them when their holder dies, however it dies.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from proctor.local.durable import translate_data_dir_error, translate_os_error

_STAGING = ".staging-"
_LOCK = ".lock-"
_OWNER = "owner.lock"
_POLL_SECONDS = 0.1


def create_root(root: Path) -> None:
    """Make the folder of folders, which is in a data dir, if it is missing.

    Raises:
        InvalidInput: the data dir can be no folder, or is not this user's.
        Terminal: the file system refuses.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise translate_data_dir_error(error, root.parent, f"creating {root}") from error


@contextmanager
def stage_folder(root: Path, name: str) -> Iterator[Path]:
    """Make a staging folder that goes away with whoever made it: at once, or swept by the next if it was killed."""
    staging = root / f"{_STAGING}{name}-{secrets.token_hex(6)}"
    with ExitStack() as owner:
        try:
            with _new_stagings(root):
                staging.mkdir(parents=True)
                owner.enter_context(_try_lock(staging / _OWNER))
        except OSError as error:
            raise translate_os_error(error, f"making {staging}") from error
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)


def commit_folder(staging: Path, target: Path) -> None:
    """Make a staging folder visible under its name, in one step.

    Raises:
        Terminal: the file system refuses.
    """
    try:
        # Without its owner's lock it looks dead: no sweep may come between.
        with _new_stagings(staging.parent):
            (staging / _OWNER).unlink()
            staging.rename(target)
    except OSError as error:
        raise translate_os_error(error, f"committing {target}") from error


def discard_folder(folder: Path) -> None:
    """Remove a visible folder: out of sight first, for what is half removed must not be found.

    Raises:
        Terminal: the file system refuses.
    """
    doomed = folder.with_name(f"{_STAGING}{folder.name}-{secrets.token_hex(6)}")
    try:
        folder.rename(doomed)
        shutil.rmtree(doomed)
    except OSError as error:
        raise translate_os_error(error, f"removing {folder}") from error


def sweep_staging(root: Path) -> int:
    """Remove what the dead left behind; return how many there were. Living ones hold their lock."""
    swept = 0
    with _new_stagings(root):
        for folder in sorted(root.glob(f"{_STAGING}*")):
            with _try_lock(folder / _OWNER) as is_dead:
                if is_dead:
                    shutil.rmtree(folder, ignore_errors=True)
                    swept += 1
    return swept


@asynccontextmanager
async def hold_name(root: Path, name: str) -> AsyncIterator[None]:
    """Wait until nobody else on this machine looks for or builds a folder of that name, and keep others waiting."""
    path = root / f"{_LOCK}{name}"
    create_root(root)
    while True:
        with _try_lock(path) as is_held:
            if is_held:
                yield
                return
        await asyncio.sleep(_POLL_SECONDS)


@contextmanager
def _new_stagings(root: Path) -> Iterator[None]:
    """Keep sweeping and making staging folders apart: between its making and its lock, one would look dead."""
    descriptor = os.open(root / ".lock-staging", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _try_lock(path: Path) -> Iterator[bool]:
    """Hold a file's lock if nobody else does; the kernel lets go of it when this process dies, however it dies."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        yield False  # the folder has just been committed or swept by another
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)
