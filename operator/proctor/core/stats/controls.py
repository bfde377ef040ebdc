"""The control cells: whether the run's instrument works at all, and whether a server alone breaks it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from proctor.core.ids import CellKey, Control
from proctor.core.stats.observations import TINY, ControlScores, GateRules, Judgement, Observation, Reason


@dataclass(frozen=True, slots=True)
class ControlFinding:
    """Why the controls alone decide a run."""

    verdict: Judgement
    reason: Reason
    summary: str


def worst_controls(observations: Iterable[Observation]) -> ControlScores:
    """Return the oracle's lowest and the noop's highest score."""
    scores = [(each.cell.control, each.score) for each in observations if each.score is not None]
    oracle = [score for control, score in scores if control is Control.ORACLE]
    noop = [score for control, score in scores if control is Control.NOOP]
    return ControlScores(min(oracle, default=None), max(noop, default=None))


def judge_controls(observations: Iterable[Observation], rules: GateRules) -> ControlFinding | None:
    """Return what the controls decide by themselves; None where they are in line.

    A noop that scores is the grader's fault. An oracle that fails is ours, unless it does well through the baseline
    and badly through a candidate alone: then the candidate broke what worked.

    Args:
        observations: at least all control cells, each over.
        rules: floor, ceiling, and the baseline.
    """
    controls = [each for each in observations if each.cell.control is not None]
    missing = [str(each.cell) for each in controls if each.score is None]
    if missing or not controls:
        what = f"control {missing[0]} has no score" if missing else "no control was run"
        return ControlFinding(Judgement.ERROR, Reason.CONTROLS_NOT_MEASURED, what)
    scores = {each.cell: each.score for each in controls if each.score is not None}
    for cell, score in scores.items():
        if cell.control is Control.NOOP and score > rules.noop_at_most + TINY:
            text = f"an empty answer scored {score:.2f} on {cell.scenario} through {cell.server}, above "
            return ControlFinding(
                Judgement.ERROR, Reason.NOOP_ABOVE_CEILING, f"{text}{rules.noop_at_most:.2f}: grader's fault"
            )
    return _judge_oracles(scores, rules)


def _judge_oracles(scores: dict[CellKey, float], rules: GateRules) -> ControlFinding | None:
    oracles = {(cell.scenario, cell.server): score for cell, score in scores.items() if cell.control is Control.ORACLE}
    low = {place: score for place, score in oracles.items() if score < rules.oracle_at_least - TINY}
    if not low:
        return None
    (scenario, server), score = min(low.items(), key=lambda item: item[1])
    text = f"the known-good answer scored {score:.2f} on {scenario} through {server}"
    if all(_is_regression(place, oracles, rules) for place in low):
        name = rules.baseline.beside(server) if rules.baseline else None
        beside = oracles[scenario, name or server]
        return ControlFinding(
            Judgement.FAIL, Reason.CONTROL_REGRESSION, f"{text}, and {beside:.2f} through the baseline {name}"
        )
    return ControlFinding(
        Judgement.ERROR, Reason.ORACLE_BELOW_FLOOR, f"{text}, below {rules.oracle_at_least:.2f}: not the agents' fault"
    )


def _is_regression(place: tuple[str, str], oracles: dict[tuple[str, str], float], rules: GateRules) -> bool:
    scenario, server = place
    baseline = None if rules.baseline is None else rules.baseline.beside(server)
    if baseline is None:
        return False
    if not {server, baseline} <= rules.played_through:
        return False  # one of the two was measured on the reference server, so they can't be compared
    return oracles.get((scenario, baseline), 0.0) >= rules.oracle_at_least - TINY
