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

__all__ = [
    "CellFacts",
    "CellTrajectory",
    "ControlFacts",
    "Fact",
    "JudgeFacts",
    "MarkFacts",
    "RunFacts",
    "RunLimits",
    "page_policy",
    "render_page",
]
