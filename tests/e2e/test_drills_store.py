"""More drills: the store is away at the beginning and at the end of a run. No other run may be on its way then."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from support.courses import check_measured
from support.drills import Drill, build_spec, without_store
from support.installed import await_it

pytestmark = [pytest.mark.cluster, pytest.mark.drill]

ALONE = frozenset({"test_clickhouse_down_while_seeding", "test_clickhouse_down_while_grading"})
AWAY_SECONDS = 150
"""Longer than a Job's own tries take where each fails at once."""


def build_specs(images: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the suite of all drills."""
    return {"": build_spec(images)}


def test_clickhouse_down_while_seeding(drill: Drill) -> None:
    """M-B1: seeding waits for a ClickHouse that comes back."""
    with without_store(drill.installed):
        rest(drill)
    drill.let_go(drill.await_agent())
    check_measured(drill, (1, "completed"))


def test_clickhouse_down_while_grading(drill: Drill) -> None:
    """M-B1, P30: what was recorded is graded once the ClickHouse is back, by a grader that had to start anew."""
    agent = drill.await_agent()
    drill.suspend_grader(suspend=True)
    drill.let_go(agent)
    await_it("the attempt is recorded", drill.attempts)
    with without_store(drill.installed):
        drill.suspend_grader(suspend=False)
        rest(drill)
    check_measured(drill, (1, "completed"))


def rest(drill: Drill) -> None:
    """See that a run just waits, for as long as the store is away."""
    until = time.monotonic() + AWAY_SECONDS
    while time.monotonic() < until:
        status = drill.status()
        assert status.get("verdict", "Pending") == "Pending", status["summary"]
        time.sleep(2)
