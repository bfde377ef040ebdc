"""How often the verdict is wrong, by simulation at stated sizes.

Scores are normal around 0.7 with standard deviation 0.05 per cell, cut to 0..1; 4 scenarios × 12 replicates; maxDrop
0.05. 400 runs each keep this fast: with them, a true rate of 2.5 % is seen above 5 % in fewer than 1 of 100 suites.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from proctor.core.stats import BaselineArm, GateRules, Judgement, Side, settle
from support.observations import controls, graded

RUNS = 400
SCENARIOS = ("a", "b", "c", "d")
REPLICATES = 12
SPREAD = 0.05
MAX_DROP = 0.05


def _rates(drop: float, *, seed: int) -> dict[Judgement, float]:
    draw = np.random.default_rng(seed)
    rules = GateRules(max_drop=MAX_DROP, baseline=BaselineArm(Side.SERVER, "base"), seed=seed)
    verdicts: Counter[Judgement] = Counter()
    fixed = controls(SCENARIOS, ["base", "cand"])
    for _ in range(RUNS):
        cells = list(fixed)
        for scenario in SCENARIOS:
            for server, mean in (("base", 0.7), ("cand", 0.7 - drop)):
                scores = np.clip(draw.normal(mean, SPREAD, REPLICATES), 0, 1)
                cells += graded(scenario, server, scores.tolist())
        verdicts[settle(cells, rules).verdict] += 1
    return {verdict: verdicts[verdict] / RUNS for verdict in Judgement}


@pytest.mark.parametrize("seed", [1])
def test_an_equal_pair_seldom_fails_and_mostly_passes(seed: int) -> None:
    """P31, statistics: A/A false fail ≤ 5 %, pass ≥ 80 %."""
    rates = _rates(0.0, seed=seed)
    assert rates[Judgement.FAIL] <= 0.05
    assert rates[Judgement.PASS] >= 0.80


def test_a_drop_of_exactly_the_limit_seldom_passes() -> None:
    """P31, statistics: a true drop of exactly maxDrop passes ≤ 5 %."""
    assert _rates(MAX_DROP, seed=2)[Judgement.PASS] <= 0.05


def test_a_drop_of_twice_the_limit_mostly_fails() -> None:
    """P31, statistics: a drop of twice maxDrop fails ≥ 80 %."""
    assert _rates(2 * MAX_DROP, seed=3)[Judgement.FAIL] >= 0.80
