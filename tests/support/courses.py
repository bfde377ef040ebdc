"""The drills of one file: their runs share an operator, and the next ones are on their way while one is broken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from support.drills import SCORE, Drill
from support.installed import Installed

AHEAD = 2

SMALL_STORE = {"resources": {"requests": {"cpu": "50m", "memory": "1Gi"}, "limits": {"memory": "8Gi"}}}
"""Leaves room for the sandboxes of several runs on a node with two processors."""


@dataclass
class Course:
    """Drills one after another.

    Attributes:
        installed: the operator.
        specs: the suites of drills by test; under an empty name that of all others.
        alone: drills that all runs feel: none of them is on its way then.
        started: the runs that are on their way.
    """

    installed: Installed
    specs: Mapping[str, Mapping[str, Any]]
    alone: frozenset[str]
    started: dict[str, Drill] = field(default_factory=dict)

    def begin(self, own: str, names: Sequence[str]) -> Drill:
        """Return the run of a drill, and see that the next ones are on their way.

        Args:
            own: the drill.
            names: all of the file, in order.
        """
        ahead = names[names.index(own) + 1 :][:AHEAD]
        self._start([own, *(name for name in ahead if not {own, name} & self.alone)])
        return self.started[own]

    def _start(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.started:
                title = name.removeprefix("test_").replace("_", "-")
                self.started[name] = Drill.start(self.installed, title, self.specs.get(name, self.specs[""]))


def check_measured(drill: Drill, *attempts: tuple[int, str]) -> None:
    """See that the cell was graded once, by which attempts, and that nothing runs any more.

    One cell is too few for a Pass; that its score is what it is without any fault is what counts.
    """
    status = drill.await_verdict()
    assert (status["verdict"], status["reason"]) == ("Inconclusive", "TooFewReplicates"), status["summary"]
    assert status["cells"]["graded"] == status["cells"]["total"] == 3, status["cells"]
    assert [arm["score"]["mean"] for arm in status["arms"]] == [SCORE], status["arms"]
    assert drill.attempts() == list(attempts), drill.attempts()
    drill.await_released()


def check_no_score(drill: Drill, verdict: str, reason: str) -> dict[str, Any]:
    """See that a run ended without a score for its cell, and that nothing runs any more."""
    status = drill.await_verdict()
    assert (status["verdict"], status["reason"]) == (verdict, reason), status["summary"]
    assert [arm.get("score") for arm in status.get("arms", [])] in ([], [None]), status["arms"]
    assert {outcome for _, outcome in drill.attempts()} <= {"infra_error"}, drill.attempts()
    drill.await_released()
    return status
