"""What each tool of an arm showed: calls, errors and whose they were, time, bytes, and whether agents kept using it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from proctor.core.ids import Arm, CellKey
from proctor.core.trajectory.events import Event, EventKind, Status

QUANTILE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFigures:
    """One tool of one arm, over the counting attempts of its cells.

    Attributes:
        calls: all of them.
        statuses: calls by whose doing their outcome is.
        errors: calls that failed, by the machine word of the failure.
        p95_ms: latency that 95 of 100 calls stay within, without what infrastructure failed; None without such a call.
        result_bytes: of all results.
        cells: cells of the arm.
        used_in: cells that called it.
        given_up_in: cells that never called it again after its first error.
    """

    arm: Arm
    tool: str
    calls: int
    statuses: Mapping[Status, int]
    errors: Mapping[str, int]
    p95_ms: float | None
    result_bytes: int
    cells: int
    used_in: int
    given_up_in: int

    @property
    def adoption(self) -> float:
        """Share of the arm's cells that used it."""
        return self.used_in / self.cells

    @property
    def given_up(self) -> float:
        """Share of the cells that used it and gave it up after its first error."""
        return self.given_up_in / self.used_in

    def error_rate(self, *statuses: Status) -> float | None:
        """Return the share of calls with one of the statuses; infrastructure is in neither side (grading rule 8).

        Args:
            statuses: whose errors; agent's and server's if none is given.
        """
        counted = self.calls - self.statuses.get(Status.INFRA_ERROR, 0)
        wanted = statuses or (Status.AGENT_ERROR, Status.SERVER_ERROR)
        return sum(self.statuses.get(status, 0) for status in wanted) / counted if counted else None


def summarise_tools(trajectories: Iterable[tuple[CellKey, Sequence[Event]]]) -> tuple[ToolFigures, ...]:
    """Return figures per arm and tool, by arm and then by name; controls are left out.

    Args:
        trajectories: the counting attempt of each cell, its events in order.
    """
    cells: Counter[Arm] = Counter()
    calls: dict[tuple[Arm, str], list[list[Event]]] = defaultdict(list)
    for key, events in trajectories:
        if key.control is not None:
            continue
        cells[key.arm] += 1
        by_tool: dict[str, list[Event]] = defaultdict(list)
        for event in events:
            if event.kind is EventKind.TOOL_CALL:
                by_tool[event.name].append(event)
        for tool, made in by_tool.items():
            calls[key.arm, tool].append(made)
    return tuple(_summarise(arm, tool, calls[arm, tool], cells[arm]) for arm, tool in sorted(calls))


def _summarise(arm: Arm, tool: str, by_cell: Sequence[Sequence[Event]], cells: int) -> ToolFigures:
    made = [event for events in by_cell for event in events]
    return ToolFigures(
        arm=arm,
        tool=tool,
        calls=len(made),
        statuses=dict(Counter(event.status for event in made)),
        errors=dict(Counter(event.error_class for event in made if event.error_class)),
        p95_ms=_p95([event.latency_us / 1000 for event in made if event.status is not Status.INFRA_ERROR]),
        result_bytes=sum(event.result_bytes for event in made),
        cells=cells,
        used_in=len(by_cell),
        given_up_in=sum(_is_given_up(events) for events in by_cell),
    )


def _is_given_up(events: Sequence[Event]) -> bool:
    """Say whether the last call is the first that failed; what infrastructure failed is no reason to give up."""
    failed = [event.status in {Status.AGENT_ERROR, Status.SERVER_ERROR, Status.DENIED} for event in events]
    return failed[-1] and sum(failed) == 1


def _p95(values: Sequence[float]) -> float | None:
    return sorted(values)[math.ceil(QUANTILE * len(values)) - 1] if values else None
