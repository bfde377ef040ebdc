"""From scores to a verdict: intervals over fixed scenarios, paired differences, controls, budgets."""

from proctor.core.stats.controls import ControlFinding, judge_controls, worst_controls
from proctor.core.stats.observations import (
    ArmFigures,
    Baseline,
    BaselineArm,
    CellFate,
    Comparison,
    ControlScores,
    GateRules,
    Interval,
    Judgement,
    Observation,
    Reason,
    Settlement,
    Side,
)
from proctor.core.stats.settlement import settle

__all__ = [
    "ArmFigures",
    "Baseline",
    "BaselineArm",
    "CellFate",
    "Comparison",
    "ControlFinding",
    "ControlScores",
    "GateRules",
    "Interval",
    "Judgement",
    "Observation",
    "Reason",
    "Settlement",
    "Side",
    "judge_controls",
    "settle",
    "worst_controls",
]
