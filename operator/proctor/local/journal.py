"""Which attempts of a run were started: what pods are to a cluster, this file is to one machine.

A line is on the disk before the attempt's door opens, so that no number is used twice, whoever was killed when.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Self

from proctor.core.ids import AttemptKey, CellKey
from proctor.errors import Terminal
from proctor.local.durable import append_line, drop_torn_line, translate_os_error


class AttemptJournal:
    """Appends and reads the started attempts of one run.

    Args:
        path: the file; created if missing.
        run: the run's uid.
    """

    def __init__(self, path: Path, run: str) -> None:
        self._path = path
        self._run = run
        self._descriptor = -1

    def __enter__(self) -> Self:
        """Open for appending.

        Raises:
            Terminal: the file can't be opened.
        """
        try:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            drop_torn_line(self._descriptor)
        except OSError as e:
            raise translate_os_error(e, f"opening {self._path}") from e
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def note_start(self, key: AttemptKey) -> None:
        """Put a start on the disk.

        Raises:
            Terminal: it could not be written.
        """
        line = json.dumps({"cell": str(key.cell), "attempt": key.attempt}).encode()
        append_line(self._descriptor, line, self._path)

    def read_started(self) -> frozenset[AttemptKey]:
        """Return every attempt that was ever started.

        Raises:
            Terminal: the file can't be read, or is not what this program writes.
        """
        try:
            lines = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return frozenset()
        except OSError as e:
            raise translate_os_error(e, f"reading {self._path}") from e
        # The last line is whole or was never acted on: its writer died before the door opened.
        return frozenset(self._parse(line) for line in lines[:-1] if line)

    def _parse(self, line: bytes) -> AttemptKey:
        try:
            values = json.loads(line)
            return AttemptKey(self._run, CellKey.parse(values["cell"]), int(values["attempt"]))
        except (ValueError, KeyError, TypeError) as e:
            raise Terminal(f"reading {self._path}: {line[:80]!r} is no line of an attempt journal") from e
