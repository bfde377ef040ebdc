"""A run as one page of HTML: drawn here whole, from what is known to text; nothing is read and nothing is written."""

from proctor.core.reports.page.facts import (
    CellFacts,
    CellTrajectory,
    ControlFacts,
    Fact,
    JudgeFacts,
    MarkFacts,
    RunFacts,
    RunLimits,
)
from proctor.core.reports.page.page import page_policy, render_page
from proctor.core.reports.page.shards import FEW_CELLS, ShardPlan

__all__ = [
    "FEW_CELLS",
    "CellFacts",
    "CellTrajectory",
    "ControlFacts",
    "Fact",
    "JudgeFacts",
    "MarkFacts",
    "RunFacts",
    "RunLimits",
    "ShardPlan",
    "page_policy",
    "render_page",
]
