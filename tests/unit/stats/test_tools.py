"""Figures per tool, from trajectories."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from proctor.core.ids import Arm, CellKey, Control
from proctor.core.stats.tools import summarise_tools
from proctor.core.trajectory.events import Event, EventKind, Status

AT = datetime(2026, 11, 30, tzinfo=UTC)


def call(tool: str, status: Status = Status.OK, *, error: str = "", ms: float = 10, size: int = 100) -> Event:
    return Event(
        seq=1, ts=AT, kind=EventKind.TOOL_CALL, status=status, name=tool, error_class=error,
        span_id="0" * 16, trace_id="0" * 32, latency_us=round(ms * 1000), result_bytes=size,
    )  # fmt: skip


def turn() -> Event:
    return Event(seq=1, ts=AT, kind=EventKind.MODEL_CALL, name="m", span_id="0" * 16, trace_id="0" * 32)


def key(replicate: int, server: str = "base") -> CellKey:
    return CellKey("s", server, "m", replicate)


def test_a_tool_is_summed_over_the_cells_of_its_arm() -> None:
    """M-A10, statistics: calls, errors by class, P95 latency, bytes, adoption; controls and model calls are no part."""
    control = CellKey.for_control("s", "base", Control.ORACLE)
    figures = summarise_tools(
        [
            (key(1), [turn(), *(call("query", ms=ms) for ms in range(1, 101))]),
            (key(2), [call("list"), call("query", Status.AGENT_ERROR, error="-32602", ms=1), call("query", ms=1)]),
            (key(3), []),
            (key(1, "cand"), [call("query")]),
            (control, [call("query")] * 50),
        ]
    )
    assert [(each.arm, each.tool) for each in figures] == [
        (Arm("base", "m"), "list"),
        (Arm("base", "m"), "query"),
        (Arm("cand", "m"), "query"),
    ]
    query = figures[1]
    assert (query.calls, query.errors, query.result_bytes, query.p95_ms) == (102, {"-32602": 1}, 10_200, 95)
    assert query.adoption == pytest.approx(2 / 3)
    assert query.error_rate() == pytest.approx(1 / 102)


def test_infrastructure_is_in_neither_side_of_the_rate() -> None:
    """Grading rule 8: nor does it slow a tool down; a rate of nothing is unknown, not 0."""
    lost = call("query", Status.INFRA_ERROR, error="engine_gone", ms=9_000)
    (figures,) = summarise_tools([(key(1), [lost, call("query", Status.SERVER_ERROR, error="hung"), call("query")])])
    assert figures.error_rate() == pytest.approx(1 / 2)
    assert figures.error_rate(Status.AGENT_ERROR) == 0
    assert figures.p95_ms == 10
    (figures,) = summarise_tools([(key(1), [lost])])
    assert figures.error_rate() is None
    assert figures.p95_ms is None


@pytest.mark.parametrize(
    ("calls", "given_up"),
    [
        pytest.param([Status.OK, Status.SERVER_ERROR], 1, id="after-the-first-error"),
        pytest.param([Status.AGENT_ERROR], 1, id="at-once"),
        pytest.param([Status.AGENT_ERROR, Status.OK], 0, id="tried-again"),
        pytest.param([Status.AGENT_ERROR, Status.AGENT_ERROR], 0, id="tried-again-in-vain"),
        pytest.param([Status.OK, Status.INFRA_ERROR], 0, id="infrastructure-is-no-reason"),
        pytest.param([Status.OK], 0, id="no-error"),
    ],
)
def test_giving_up(calls: list[Status], given_up: int) -> None:
    """Statistics: share of cells that gave a tool up after a first error."""
    (figures,) = summarise_tools([(key(1), [call("query", status) for status in calls])])
    assert figures.given_up == given_up
