"""What each arm showed: scores, spread, consistency, cost."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from decimal import Decimal
from itertools import combinations

from proctor.core.ids import Arm
from proctor.core.stats.intervals import estimate_mean, pooled_deviation, unsize
from proctor.core.stats.observations import SCORE, TINY, ArmFigures, CellFate, GateRules, Interval, Observation
from proctor.core.stats.quantiles import ONE_SIDE

ALIKE = 0.1
"""Two replicates are consistent when their scores differ by less than this."""
PASS_K = 3


def summarise_arms(
    observations: Sequence[Observation], rules: GateRules
) -> tuple[tuple[ArmFigures, ...], tuple[ArmFigures, ...]]:
    """Return figures per arm, and per arm and scenario, in the order in which they first occur.

    Args:
        observations: cells that are no controls.
        rules: for the seed of resampling and what counts as a success.
    """
    arms: dict[Arm, list[Observation]] = defaultdict(list)
    parts: dict[tuple[Arm, str], list[Observation]] = defaultdict(list)
    for observation in observations:
        arms[observation.cell.arm].append(observation)
        parts[observation.cell.arm, observation.cell.scenario].append(observation)
    overall = tuple(_summarise(arm, None, cells, rules) for arm, cells in arms.items())
    return overall, tuple(_summarise(arm, scenario, cells, rules) for (arm, scenario), cells in parts.items())


def strata_of(observations: Sequence[Observation]) -> list[list[float]]:
    """Return the scores by scenario, without scenarios that have none."""
    scores: dict[str, list[float]] = defaultdict(list)
    for observation in sorted(observations, key=lambda each: each.cell):
        if observation.score is not None:
            scores[observation.cell.scenario].append(observation.score)
    return list(scores.values())


def consistency_of(strata: Sequence[Sequence[float]]) -> float | None:
    """Return the share of replicate pairs within a scenario whose scores are alike; None without a pair."""
    pairs = [abs(one - other) for values in strata for one, other in combinations(values, 2)]
    return sum(difference < ALIKE - TINY for difference in pairs) / len(pairs) if pairs else None


def pass_k_of(strata: Sequence[Sequence[float]], success_at: float, k: int = PASS_K) -> float | None:
    """Return the chance that k cells of a scenario, drawn without replacement, all succeed; mean over scenarios."""
    if not strata or any(len(values) < k for values in strata):
        return None
    chances = [
        math.comb(sum(value >= success_at - TINY for value in values), k) / math.comb(len(values), k)
        for values in strata
    ]
    return math.fsum(chances) / len(chances)


def _summarise(arm: Arm, scenario: str | None, cells: Sequence[Observation], rules: GateRules) -> ArmFigures:
    strata = strata_of(cells)
    tried = [cell for cell in cells if cell.fate in {CellFate.GRADED, CellFate.UNGRADED}]
    prices = [cell.usd for cell in tried]
    known = [price for price in prices if price is not None]
    return ArmFigures(
        arm=arm,
        scenario=scenario,
        score=estimate_score(cells, strata, seed=rules.seed, scripted=rules.is_scripted(arm), tail=rules.tail),
        spread=pooled_deviation(strata),
        consistency=consistency_of(strata),
        pass_k=pass_k_of(strata, rules.success_at),
        k=PASS_K,
        tool_calls=_mean([cell.tool_calls for cell in tried]),
        tokens=sum(cell.tokens for cell in tried),
        usd=sum(known, Decimal(0)) if known and len(known) == len(prices) else None,
        seconds=_mean([cell.seconds for cell in tried]),
        outcomes=dict(Counter(cell.outcome for cell in cells if cell.outcome is not None)),
        fates=dict(Counter(cell.fate for cell in cells)),
    )


def estimate_score(
    cells: Sequence[Observation], strata: list[list[float]], *, seed: int, scripted: bool, tail: float = ONE_SIDE
) -> Interval | None:
    """Return the score of one arm's cells with its interval; None without a graded cell.

    Args:
        cells: the arm's.
        strata: their scores by scenario; where a scenario has none, nothing is said about chance.
        seed: of resampling.
        scripted: the arm's model has no chance in it.
        tail: one-sided chance that the interval misses.
    """
    if not strata:
        return None
    score = estimate_mean(strata, SCORE, seed=seed, scripted=scripted, tail=tail)
    return score if len(strata) == len({cell.cell.scenario for cell in cells}) else unsize(score, SCORE)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
