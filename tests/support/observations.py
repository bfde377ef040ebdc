"""Makers of observations: states that a finished run can be in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from proctor.core.ids import CellKey, Control
from proctor.core.stats import CellFate, Observation
from proctor.core.trajectory.outcome import Outcome


def graded(scenario: str, server: str, scores: Iterable[float], *, model: str = "m") -> list[Observation]:
    return [
        Observation(
            cell=CellKey(scenario, server, model, index),
            fate=CellFate.GRADED,
            score=score,
            outcome=Outcome.COMPLETED,
            tool_calls=5,
            tokens=1000,
            seconds=2.0,
        )
        for index, score in enumerate(scores, start=1)
    ]


def lost(cell: CellKey, fate: CellFate) -> Observation:
    return Observation(cell=cell, fate=fate)


def controls(
    scenarios: Sequence[str], servers: Sequence[str], *, oracle: Mapping[str, float] | None = None, noop: float = 0.0
) -> list[Observation]:
    """Controls of every scenario and server; `oracle` gives other scores than 1 by server."""
    return [
        Observation(
            cell=CellKey.for_control(scenario, server, control),
            fate=CellFate.GRADED,
            score=noop if control is Control.NOOP else (oracle or {}).get(server, 1.0),
        )
        for scenario in scenarios
        for server in servers
        for control in Control
    ]
