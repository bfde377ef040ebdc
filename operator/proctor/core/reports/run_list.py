"""Which runs there are, one line each; made from run.json as it stands, so that a list of many costs no validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from proctor.clock import parse_instant
from proctor.core.reports.grid import Align, Grid, render_grid
from proctor.core.reports.inert import make_inert

_TITLES = ("run", "suite", "verdict", "reason", "age", "cells", "score")
_ALIGNS = (*(Align.LEFT,) * 4, *(Align.RIGHT,) * 3)
_PENDING = "Pending"
_NONE = "–"
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """One run of a list.

    Attributes:
        name: the run's.
        suite: its suite's name.
        verdict: ``?`` for a run that can't be read.
        reason: why; of a Pending run whether it goes on.
        started: when, RFC 3339; None before that.
        age: seconds since then; None before that.
        cells: how many are done, of how many; a cancelled one never was.
        score: the lowest and the highest mean score of its arms; None without one.
        summary: one sentence.
    """

    name: str
    suite: str = ""
    verdict: str = "?"
    reason: str = ""
    started: str | None = None
    age: int | None = None
    cells: str = ""
    score: tuple[float, float] | None = None
    summary: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def describe_run(name: str, head: Mapping[str, Any], *, now: datetime, goes_on: bool) -> RunLine:
    """Return a run's line.

    Args:
        name: the run's.
        head: the EvalRun as JSON.
        now: for its age.
        goes_on: whether an executor is at work on it.

    Raises:
        ValueError: a value has not the form it should have.
        TypeError: as above.
    """
    status = _mapping(head.get("status"))
    verdict = str(status.get("verdict", _PENDING))
    started = status.get("started")
    return RunLine(
        name=name,
        suite=str(_mapping(_mapping(head.get("spec")).get("suiteRef")).get("name", "")),
        verdict=verdict,
        reason=("goes on" if goes_on else "stopped") if verdict == _PENDING else str(status.get("reason", "")),
        started=None if started is None else str(started),
        age=None if started is None else max(int((now - parse_instant(str(started))).total_seconds()), 0),
        cells=_count_cells(_mapping(status.get("cells"))),
        score=_find_scores(status.get("arms")),
        summary=str(status.get("summary", "")),
    )


def render_runs(lines: Sequence[RunLine]) -> str:
    """Render a list for a terminal."""
    return "\n".join(render_grid(Grid(_TITLES, _ALIGNS, tuple(_row(line) for line in lines))))


def _row(line: RunLine) -> tuple[str, ...]:
    texts = (make_inert(text) for text in (line.name, line.suite, line.verdict, line.reason))
    return (*texts, _render_age(line.age), line.cells, _render_score(line.score))


def _count_cells(cells: Mapping[str, Any]) -> str:
    total = int(cells.get("total", 0))
    done = total - sum(int(cells.get(state, 0)) for state in ("running", "pending", "cancelled"))
    return f"{done}/{total}"


def _find_scores(arms: object) -> tuple[float, float] | None:
    found = [_mapping(_mapping(arm).get("score")).get("mean") for arm in (arms if isinstance(arms, list) else [])]
    means = [float(mean) for mean in found if mean is not None]
    return (min(means), max(means)) if means else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _render_age(seconds: int | None) -> str:
    if seconds is None:
        return _NONE
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _render_score(score: tuple[float, float] | None) -> str:
    if score is None:
        return _NONE
    low, high = (f"{value:.2f}" for value in score)
    return low if low == high else f"{low}–{high}"
