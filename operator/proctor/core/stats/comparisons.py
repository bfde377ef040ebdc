"""Candidates beside the baseline, over pairs of the same scenario, replicate and dataset."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from proctor.core.ids import Arm
from proctor.core.stats.intervals import cluster_interval, estimate_mean, permutation_p, unsize
from proctor.core.stats.observations import DIFFERENCE, ArmFigures, Comparison, GateRules, Observation
from proctor.core.stats.quantiles import holm
from proctor.core.stats.sizing import Shape


@dataclass(frozen=True, slots=True)
class _Paired:
    """Differences by scenario, and whether every scenario has one."""

    strata: list[list[float]]
    complete: bool

    @property
    def count(self) -> int:
        return sum(len(values) for values in self.strata)


@dataclass(frozen=True, slots=True)
class _Sides:
    """The figures of both sides; the baseline's are None where it has no cells."""

    candidate: ArmFigures
    baseline: ArmFigures | None
    opposite: Arm


def compare_arms(
    observations: Sequence[Observation], figures: Sequence[ArmFigures], rules: GateRules
) -> tuple[Comparison, ...]:
    """Compare every candidate arm with its baseline; empty without a baseline.

    Args:
        observations: cells that are no controls.
        figures: of each arm over all scenarios.
        rules: name the baseline and the threshold.
    """
    if rules.baseline is None:
        return ()
    scores = _scores_by_arm(observations)
    by_arm = {each.arm: each for each in figures}
    found = []
    p_values = []
    scenarios = {observation.cell.scenario for observation in observations}
    for arm, figure in by_arm.items():
        opposite = rules.baseline.opposite(arm)
        if opposite is None or not rules.is_candidate(arm):
            continue
        paired = _pair(scores.get(arm, {}), scores.get(opposite, {}), scenarios)
        sides = _Sides(figure, by_arm.get(opposite), opposite)
        comparison = _compare(sides, paired, rules)
        found.append(comparison)
        p_values.append(permutation_p(paired.strata, seed=rules.seed) if paired.count else 1.0)
    corrected = holm(p_values)
    return tuple(
        replace(comparison, p=p if comparison.pairs else None) for comparison, p in zip(found, corrected, strict=True)
    )


def _scores_by_arm(observations: Sequence[Observation]) -> dict[Arm, dict[tuple[str, int], float]]:
    scores: dict[Arm, dict[tuple[str, int], float]] = defaultdict(dict)
    for observation in observations:
        if observation.score is not None:
            scores[observation.cell.arm][observation.cell.scenario, observation.cell.replicate] = observation.score
    return scores


def _pair(
    candidate: Mapping[tuple[str, int], float], baseline: Mapping[tuple[str, int], float], scenarios: set[str]
) -> _Paired:
    strata: dict[str, list[float]] = defaultdict(list)
    for scenario, replicate in sorted(candidate.keys() & baseline.keys()):
        strata[scenario].append(candidate[scenario, replicate] - baseline[scenario, replicate])
    return _Paired(list(strata.values()), complete=strata.keys() == scenarios)


def _compare(sides: _Sides, paired: _Paired, rules: GateRules) -> Comparison:
    baseline = sides.baseline
    bare = Comparison(
        candidate=sides.candidate.arm,
        baseline=sides.opposite,
        candidate_score=sides.candidate.score,
        baseline_score=None if baseline is None else baseline.score,
        pairs=paired.count,
        delta=None,
    )
    if not paired.count:
        return bare
    scripted = rules.is_scripted(sides.candidate.arm, sides.opposite)
    delta = estimate_mean(paired.strata, DIFFERENCE, seed=rules.seed, scripted=scripted, tail=rules.tail)
    if not paired.complete:
        delta = unsize(delta, DIFFERENCE)
    shape = Shape.of(paired.strata, delta, rules.tail) if delta.sized and not delta.deterministic else None
    return replace(
        bare,
        delta=delta,
        clustered=cluster_interval(paired.strata, DIFFERENCE, seed=rules.seed),
        minimum_detectable=None if shape is None else shape.detectable(),
        replicates_needed=None if shape is None else shape.replicates_needed(rules.max_drop),
        spread_ratio=_ratio(sides.candidate.spread, None if baseline is None else baseline.spread),
    )


def _ratio(candidate: float | None, baseline: float | None) -> float | None:
    return candidate / baseline if candidate and baseline else None
