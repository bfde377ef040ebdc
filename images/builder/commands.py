"""Other programs, and what they said when they fail."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from builder.faults import ImageError

LAST_LINES = 15


def run(*words: str, environment: Mapping[str, str] | None = None, folder: Path | None = None) -> str:
    """Run a program and return what it wrote.

    Raises:
        ImageError: it failed, or isn't there.
    """
    try:
        done = subprocess.run(words, check=False, capture_output=True, text=True, env=environment, cwd=folder)
    except FileNotFoundError as fault:
        raise ImageError(f"{words[0]} is not installed") from fault
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-LAST_LINES:])
        raise ImageError(f"{shlex.join(words)[:200]} failed:\n{said}")
    return done.stdout
