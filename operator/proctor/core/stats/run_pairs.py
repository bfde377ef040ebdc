"""Two runs beside each other: the same arms, cell by cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from proctor.core.ids import Arm
from proctor.core.stats.figures import estimate_score, strata_of
from proctor.core.stats.intervals import estimate_mean, permutation_p, unsize
from proctor.core.stats.observations import DIFFERENCE, Interval, Observation
from proctor.core.stats.quantiles import holm


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmChange:
    """One arm in two runs.

    Attributes:
        before: its score in the first run; None without a graded cell.
        after: its score in the second.
        pairs: cells with a score in both.
        delta: second less first, over the pairs; None without one.
        p: permutation p-value after Holm's correction over the arms; None without a pair.
    """

    arm: Arm
    before: Interval | None
    after: Interval | None
    pairs: int
    delta: Interval | None
    p: float | None = None


def compare_runs(
    before: Sequence[Observation], after: Sequence[Observation], *, seed: int, scripted: frozenset[str] = frozenset()
) -> tuple[ArmChange, ...]:
    """Compare the arms that both runs have, in the first run's order.

    Args:
        before: cells of the first run that are no controls.
        after: of the second.
        seed: of resampling.
        scripted: models without any chance in them, in both runs.
    """
    left, right = _by_arm(before), _by_arm(after)
    found = []
    p_values = []
    for arm, cells in left.items():
        if arm not in right:
            continue
        is_scripted = arm.model in scripted
        pairs, complete = _pair(cells, right[arm])
        delta = estimate_mean(pairs, DIFFERENCE, seed=seed, scripted=is_scripted) if pairs else None
        found.append(
            ArmChange(
                arm=arm,
                before=_score_of(cells, seed=seed, scripted=is_scripted),
                after=_score_of(right[arm], seed=seed, scripted=is_scripted),
                pairs=sum(len(values) for values in pairs),
                delta=delta if delta is None or complete else unsize(delta, DIFFERENCE),
            )
        )
        p_values.append(permutation_p(pairs, seed=seed) if pairs else 1.0)
    return tuple(
        replace(change, p=p if change.pairs else None) for change, p in zip(found, holm(p_values), strict=True)
    )


def _by_arm(observations: Sequence[Observation]) -> dict[Arm, list[Observation]]:
    found: dict[Arm, list[Observation]] = defaultdict(list)
    for observation in observations:
        found[observation.cell.arm].append(observation)
    return found


def _pair(before: Sequence[Observation], after: Sequence[Observation]) -> tuple[list[list[float]], bool]:
    """Return differences by scenario, and whether every scenario that both runs have gave one."""
    left, right = _scores(before), _scores(after)
    strata: dict[str, list[float]] = defaultdict(list)
    for scenario, replicate in sorted(left.keys() & right.keys()):
        strata[scenario].append(right[scenario, replicate] - left[scenario, replicate])
    shared = {one.cell.scenario for one in before} & {one.cell.scenario for one in after}
    return list(strata.values()), strata.keys() == shared


def _scores(observations: Sequence[Observation]) -> Mapping[tuple[str, int], float]:
    return {(one.cell.scenario, one.cell.replicate): one.score for one in observations if one.score is not None}


def _score_of(cells: Sequence[Observation], *, seed: int, scripted: bool) -> Interval | None:
    return estimate_score(cells, strata_of(cells), seed=seed, scripted=scripted)
