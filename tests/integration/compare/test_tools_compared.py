"""`proctor compare` over a real store: what tools did in both runs."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from proctor.core.ids import CellKey
from proctor.core.reports.run_comparison_json import build_comparison_json
from proctor.core.reports.run_comparison_text import render_comparison
from proctor.core.trajectory.events import Status
from proctor.local.comparing import compare_stored
from support.finished_runs import Played, make_finished_run, serve_runs, suite_of

pytestmark = pytest.mark.engine
A, B = "before-261130-120000-0001", "after-261130-130000-0002"


def play_before(_cell: CellKey, _chance: random.Random) -> Played:
    return Played(tools=(("run_query", Status.OK),) * 4, latency_ms=10)


def play_after(_cell: CellKey, _chance: random.Random) -> Played:
    return Played(tools=(("run_query", Status.SERVER_ERROR), ("\x1b[2Jnew_tool", Status.OK)), latency_ms=100)


async def test_tools_of_both_runs(tmp_path: Path) -> None:
    """M-A10, M-B7: calls, errors and P95 per arm and tool, before and after; a tool's name acts on nothing."""
    first = make_finished_run(tmp_path, name=A, suite=suite_of(12), play=play_before)
    second = make_finished_run(tmp_path, name=B, suite=suite_of(12), play=play_after, tools="99" * 32)
    async with serve_runs(tmp_path, first, second):
        compared = await compare_stored(first.directory, second.directory, tmp_path)
    found: dict[str, Any] = json.loads(json.dumps(build_comparison_json(compared)))
    tools = {(one["server"], one["model"], one["tool"]): one for one in found["tools"]}
    query = tools["left", "newest", "run_query"]
    assert (query["before"]["calls"], query["after"]["calls"]) == (12, 3)
    assert (query["before"]["errorRate"], query["after"]["errorRate"]) == (0, 1)
    assert query["before"]["p95Ms"] < 20
    assert query["after"]["p95Ms"] > 90
    assert tools["left", "newest", "\x1b[2Jnew_tool"]["before"] is None
    assert {change["what"] for change in found["inputs"]} == {"tool list of left", "tool list of right"}
    shown = render_comparison(compared)
    assert "0% → 100%" in shown
    assert "\\u001b[2Jnew_tool" in shown
    assert "\x1b" not in shown
