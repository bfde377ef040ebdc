"""The folder of a run: its frozen suite, its EvalRun, its spool and logs."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from proctor.errors import InvalidInput, Terminal
from proctor.local.durable import translate_os_error, write_atomic

# Listing runs must not load the types of a run and a suite: that takes longer than reading a hundred of them.
if TYPE_CHECKING:
    from proctor.api.run import EvalRun
    from proctor.api.suite import EvalSuiteSpec

SUITE_DIGEST_ANNOTATION = "proctor.dev/suite-digest"
"""Digest of the suite as it was asked for, before anything was resolved: what a resumed run is found by."""

STORE_ANNOTATION = "proctor.dev/results-store"
"""Where the run's results go, without user and password: nowhere else can it go on."""

_MAX_SUITE_PART = 30
LAST = "last"
_RUN_BEGINS = re.compile(r'\s*\{\s*"run":\s*', re.ASCII)
_HEAD_BYTES = 64 << 10
"""What a status with some arms takes."""


@dataclass(frozen=True, slots=True)
class RunDir:
    """Where a run's files are.

    Attributes:
        path: ``runs/<name>``; its last part is the run's name.
    """

    path: Path

    @property
    def name(self) -> str:
        """The run's name."""
        return self.path.name

    @property
    def run_file(self) -> Path:
        """The EvalRun with its status, and its cells."""
        return self.path / "run.json"

    @property
    def suite_file(self) -> Path:
        """The frozen suite: written once, never again."""
        return self.path / "suite.json"

    @property
    def journal(self) -> Path:
        """Which attempts were started."""
        return self.path / "attempts.jsonl"

    @property
    def summary(self) -> Path:
        """The grader's summary."""
        return self.path / "summary.json"

    @property
    def cancel_request(self) -> Path:
        """Its existence asks a running executor to cancel."""
        return self.path / "cancel"

    @property
    def spool(self) -> Path:
        """Where the record waits while the store is away."""
        return self.path / "spool"

    def log(self, process: str) -> Path:
        """Return the log file of one of the run's processes."""
        return self.path / "logs" / f"{process}.log"

    def write_run(self, run: EvalRun, cells: Sequence[dict[str, Any]]) -> None:
        """Replace run.json in one step.

        Raises:
            Terminal: it could not be written.
        """
        head = json.dumps(run.to_file(), indent=1, ensure_ascii=False)
        # A line each: written as often as once a second, and laid out for people they take five times as long.
        lines = ",\n".join(json.dumps(cell, ensure_ascii=False) for cell in cells)
        write_atomic(self.run_file, f'{{"run": {head},\n"cells": [\n{lines}\n]}}\n'.encode())

    def read_run(self) -> EvalRun:
        """Read the run.

        Raises:
            Terminal: it can't be read, or is not what this program writes.
        """
        return self._parse_run(self.read_head())

    def read_head(self) -> dict[str, Any]:
        """Read the run as JSON, without parsing the cells that follow it.

        Raises:
            Terminal: it can't be read.
        """
        size = _HEAD_BYTES
        try:
            with self.run_file.open("rb") as file:
                text = file.read(size)
                # A cut is never inside a number, the one thing that could end too early: the run is an object.
                while (head := _parse_head(text)) is None and (more := file.read(size)):
                    text += more
                    size *= 4
        except OSError as e:
            raise translate_os_error(e, f"reading {self.run_file}") from e
        if head is None:
            raise Terminal(f"reading {self.run_file}: it is not what this version writes")
        return head

    def read_whole(self) -> tuple[EvalRun, list[dict[str, Any]]]:
        """Read the run and its cells, of one moment.

        Raises:
            Terminal: they can't be read, or are not what this program writes.
        """
        run, cells = self.read_raw()
        return self._parse_run(run), cells

    def read_raw(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Read the run and its cells, of one moment, as JSON.

        Raises:
            Terminal: they can't be read.
        """
        whole = self._load(self.run_file)
        run, cells = whole.get("run"), whole.get("cells")
        return run if isinstance(run, dict) else {}, cells if isinstance(cells, list) else []

    def read_raw_suite(self) -> dict[str, Any]:
        """Read the frozen suite as JSON.

        Raises:
            Terminal: it can't be read.
        """
        return self._load(self.suite_file)

    def read_cells(self) -> list[dict[str, Any]]:
        """Read the cells of the run as they were last written.

        Raises:
            Terminal: they can't be read.
        """
        cells = self._load(self.run_file).get("cells")
        return cells if isinstance(cells, list) else []

    def read_suite(self) -> EvalSuiteSpec:
        """Read the frozen suite.

        Raises:
            Terminal: it can't be read, or is not what this program writes.
        """
        from pydantic import ValidationError

        from proctor.api.suite import EvalSuiteSpec

        try:
            return EvalSuiteSpec.model_validate(self._load(self.suite_file))
        except ValidationError as e:
            raise Terminal(f"reading run {self.name}: {self.suite_file} is not a suite of this version") from e

    def _parse_run(self, values: object) -> EvalRun:
        from pydantic import ValidationError

        from proctor.api.run import EvalRun

        try:
            return EvalRun.model_validate(values)
        except ValidationError as e:
            raise Terminal(f"reading run {self.name}: {self.run_file} is not a run that this version writes") from e

    def _load(self, path: Path) -> dict[str, Any]:
        try:
            loaded = json.loads(path.read_bytes())
        except OSError as e:
            raise translate_os_error(e, f"reading {path}") from e
        except ValueError as e:
            raise Terminal(f"reading {path}: it is not JSON") from e
        if not isinstance(loaded, dict):
            raise Terminal(f"reading {path}: it is no JSON object")
        return loaded


def create_run(
    runs_dir: Path, *, suite_name: str, suite: EvalSuiteSpec, annotations: dict[str, str], now: datetime
) -> tuple[RunDir, EvalRun]:
    """Make the folder of a new run; it is there wholly or not at all.

    Args:
        runs_dir: where runs are.
        suite_name: for the run's name.
        suite: frozen and resolved.
        annotations: what a later command has to know of it.
        now: for the run's name.

    Raises:
        Terminal: the disk refuses.
    """
    from proctor.api.fields import NameRef
    from proctor.api.run import EvalRun, EvalRunSpec
    from proctor.api.suite import Metadata

    name = f"{suite_name[:_MAX_SUITE_PART].rstrip('-.')}-{now:%y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    run = EvalRun(
        metadata=Metadata(name=name, uid=str(uuid4()), generation=1, annotations=annotations),
        spec=EvalRunSpec(suite_ref=NameRef(name=suite_name)),
    )
    # A folder is a run once it has its run.json, which comes last.
    directory = RunDir(runs_dir / name)
    try:
        (directory.path / "logs").mkdir(parents=True)
        directory.spool.mkdir(mode=0o700)
    except OSError as e:
        raise translate_os_error(e, f"creating {directory.path}") from e
    write_atomic(directory.suite_file, json.dumps(suite.to_file(), indent=1, ensure_ascii=False).encode() + b"\n")
    directory.write_run(run, [])
    return directory, run


def list_runs(runs_dir: Path) -> Iterator[RunDir]:
    """Yield the runs of a data dir, newest first."""
    try:
        found = [(path.stat().st_mtime_ns, path.parent) for path in runs_dir.glob("*/suite.json")]
    except OSError:
        found = []
    # suite.json is written once, so its time is the run's birth.
    for _, path in sorted(found, reverse=True):
        directory = RunDir(path)
        if directory.run_file.is_file():
            yield directory


def find_resumable(runs_dir: Path, requested_digest: str) -> tuple[RunDir, EvalRun] | None:
    """Return the newest run of a suite if it is still Pending; None if there is nothing to resume."""
    for directory in list_runs(runs_dir):
        try:
            run = directory.read_run()
        except Terminal:
            continue  # of another version; `proctor runs` shows it
        if run.metadata.annotations.get(SUITE_DIGEST_ANNOTATION) == requested_digest and not run.status.terminal:
            return directory, run
    return None


def find_run(runs_dir: Path, name: str) -> RunDir:
    """Return a run by its name, by the beginning of it, or the newest one by ``last``.

    Raises:
        InvalidInput: none matches, or more than one.
    """
    known = list(list_runs(runs_dir))
    if name == LAST and known:
        return known[0]
    exact = [directory for directory in known if directory.name == name]
    matches = exact or [directory for directory in known if directory.name.startswith(name)]
    if not matches:
        raise InvalidInput(f"run {name!r}: there is none in {runs_dir}; `proctor runs` lists them")
    if len(matches) > 1:
        names = ", ".join(directory.name for directory in matches[:5])
        raise InvalidInput(f"run {name!r} may be {names}: give more of its name")
    return matches[0]


def _parse_head(text: bytes) -> dict[str, Any] | None:
    """Return the run that a run.json begins with; None where the text does not hold all of it."""
    shown = text.decode("utf-8", "ignore")
    begin = _RUN_BEGINS.match(shown)
    if begin is None:
        return None
    try:
        head, _ = json.JSONDecoder().raw_decode(shown, begin.end())
    except ValueError:
        return None
    return head if isinstance(head, dict) else None
