"""Whole runs in which parts are killed at chosen events, and what must be the same afterwards."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from proctor.settings import shipped_scenarios_dir
from support.judges import honest
from support.local_runs import Machine, folder_of, kill, list_descendants, make_suite
from support.messages_server import KEY, Message, MessagesServer, Play, play_policy, serve_messages

POLICIES = ("newest", "loudest")
MODEL_ASKED, JUDGE_ASKED = "a model was asked", "the judge was asked"
TRIAL = 6
"""How often the judge is asked before any answer: three planted ones, in two orders."""
_JUDGE = "claude-judge"
_SECRET = {"name": "anthropic", "key": "api-key"}
_RUN_SECONDS = 220


class Victim(StrEnum):
    """What can be killed."""

    PROCTOR = "proctor"
    GATEWAY = "gateway"
    GRADER = "grader"
    RESULTS = "results engine"
    CLONE = "dataset's engine"


_PROGRAMS = {Victim.GATEWAY: "-m proctor.gateway", Victim.GRADER: "-m proctor.jobs.grade"}
_FOLDERS = {Victim.RESULTS: "engines/results", Victim.CLONE: "/clones/"}


@dataclass(frozen=True)
class Point:
    """A kill: at which event, and of whom, in order of preference; what does not live can't be killed."""

    event: int
    victims: tuple[Victim, ...]


@dataclass
class Striker:
    """Counts the events of a run, a line of progress or a request to a model each, and kills when it is time.

    Whoever notes an event waits until the kill is done: the line is not read on, the request not answered.

    Attributes:
        points: the kills that are still to come.
        watch: told of each event: the line, or whose request it is.
    """

    points: list[Point] = field(default_factory=list)
    events: int = 0
    struck: list[tuple[int, Victim]] = field(default_factory=list)
    process: subprocess.Popen[str] | None = None
    watch: Callable[[str], None] = lambda _: None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, what: str) -> None:
        with self._lock:
            self.events += 1
            self.watch(what)
            if self.points and self.events >= self.points[0].event and self._strike(self.points[0]):
                self.points.pop(0)

    def _strike(self, point: Point) -> bool:
        process = self.process
        if process is None or process.poll() is not None:
            return False
        living = find_victims(process.pid)
        victim = next((one for one in point.victims if one in living), None)
        if victim is None:
            return False
        kill(living[victim])
        self.struck.append((self.events, victim))
        return True


def find_victims(pid: int) -> dict[Victim, int]:
    """Return which parts of a run live now, with their processes."""
    found = {Victim.PROCTOR: pid}
    for child, command in list_descendants(pid).items():
        for victim, words in _PROGRAMS.items():
            if words in command:
                found[victim] = child
        for victim, words in _FOLDERS.items():
            if "engine/serve.py" in command and words in folder_of(child):
                found[victim] = child
    return found


@dataclass
class Stage:
    """A data dir, and two servers that play the models and the judge."""

    machine: Machine
    provider: MessagesServer
    judge: MessagesServer
    striker: Striker = field(default_factory=Striker)

    def make_suite(self, name: str, **changes: Any) -> dict[str, Any]:
        models = [
            {"name": name, "anthropic": {"model": name, "secretKeyRef": _SECRET, "baseUrl": self.provider.url}}
            for name in POLICIES
        ]
        judge = {"anthropic": {"model": _JUDGE, "secretKeyRef": _SECRET, "baseUrl": self.judge.url}}
        # Every kill may void the attempts that are open: infrastructure is what is being tried here.
        return make_suite(name, **{"models": models, "judge": judge, "limits": {"infraRetries": 10}} | changes)

    def run(self, suite: Path, points: Iterable[Point] = (), *, new: bool = False) -> dict[str, Any]:
        """Run a suite to its end, resuming it whenever `proctor` itself was killed; return its run.json."""
        self.striker.points, self.striker.events, self.striker.struck = list(points), 0, []
        codes = []
        while not codes or codes[-1] == -signal.SIGKILL:
            code, err = self.run_once(suite, *(["--new"] if new and not codes else []))
            codes.append(code)
        assert codes[-1] in {0, 1, 2}, f"{self.striker.struck}: {err}"
        return self.machine.last_run()

    def run_once(self, suite: Path, *options: str) -> tuple[int, str]:
        hosts = ("--allow-host", self.provider.host, "--allow-host", self.judge.host)
        process = self.machine.start("run", str(suite), *hosts, *options)
        self.striker.process = process
        watchdog = threading.Timer(_RUN_SECONDS, process.kill)
        watchdog.start()
        lines = []
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            self.striker.note(line)
        late = not watchdog.is_alive()
        watchdog.cancel()
        process.communicate()
        assert not late, f"{self.striker.struck}: {lines}"
        return process.returncode, "".join(lines)


@contextmanager
def open_stage(machine: Machine) -> Iterator[Stage]:
    """Serve models and judge; every request to them is an event."""
    striker = Striker()
    scenario = shipped_scenarios_dir() / "error-root-cause"
    plays = {policy: play_policy(scenario, policy, {"query": "sql"}) for policy in POLICIES}
    with_key = replace(machine, environment={"ANTHROPIC_API_KEY": KEY})
    with (
        serve_messages(
            _noted(striker, MODEL_ASKED, lambda body: plays[body["model"]](body)), models=frozenset(plays)
        ) as provider,
        serve_messages(_noted(striker, JUDGE_ASKED, honest()), models=frozenset({_JUDGE})) as judge,
    ):
        yield Stage(with_key, provider, judge, striker)


def _noted(striker: Striker, what: str, play: Play) -> Play:
    def noting(body: Message) -> Message:
        striker.note(what)
        return play(body)

    return noting


_OF_A_CELL: tuple[str, ...] = (
    "state", "outcome", "turns", "toolCalls", "toolErrors", "inputTokens", "outputTokens",
    "answerDigest", "score", "programmatic", "judge", "penalty",
)  # fmt: skip
_OF_A_RUN: tuple[str, ...] = ("verdict", "reason", "summary", "cells", "outcomes", "controls", "comparisons", "digests")


def table_of(document: dict[str, Any]) -> dict[str, Any]:
    """Return what two runs of one suite must agree on: all but times, names and the numbers of attempts."""
    status = document["run"]["status"]
    arms = [
        {name: arm.get(name) for name in ("server", "model", "score", "toolCalls", "usd")} for arm in status["arms"]
    ]
    cells = {cell["cell"]: {name: cell.get(name) for name in _OF_A_CELL} for cell in document["cells"]}
    return {"run": {name: status.get(name) for name in _OF_A_RUN}, "arms": arms, "cells": cells}


def describe_difference(before: Any, after: Any, path: str = "") -> list[str]:
    """Say where two tables differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = sorted({*before, *after})
        return [
            line for name in names for line in describe_difference(before.get(name), after.get(name), f"{path}/{name}")
        ]
    return [] if before == after else [f"{path}: {before!r} became {after!r}"]
