"""How often the gate says what, by size: a power table of simulated runs.

Two arms with normal scores around 0.7, cut to 0..1, and maxDrop 0.05. Per size: an equal pair, a drop of exactly
maxDrop (must not pass) and of twice maxDrop (must not pass, should fail).

    python bench/power.py [RUNS]
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np

from proctor.core.ids import CellKey, Control
from proctor.core.stats import BaselineArm, CellFate, GateRules, Judgement, Observation, Side, settle

MAX_DROP = 0.05
MEAN = 0.7
SIZES = (
    (1, 3, 0.02),
    (1, 5, 0.05),
    (1, 12, 0.05),
    (4, 5, 0.05),
    (4, 12, 0.05),
    (4, 12, 0.10),
    (8, 12, 0.10),
)


def simulate(scenarios: int, replicates: int, *, spread: float, drop: float, runs: int) -> dict[Judgement, float]:
    """Return the share of each verdict."""
    draw = np.random.default_rng([scenarios, replicates, round(spread * 1000), round(drop * 1000)])
    rules = GateRules(max_drop=MAX_DROP, baseline=BaselineArm(Side.SERVER, "base"))
    names = [f"s{index}" for index in range(scenarios)]
    controls = [
        observe(CellKey.for_control(name, server, control), 1.0 if control is Control.ORACLE else 0.0)
        for name in names
        for server in ("base", "cand")
        for control in Control
    ]
    verdicts: Counter[Judgement] = Counter()
    for _ in range(runs):
        cells = list(controls)
        for name in names:
            for server, mean in (("base", MEAN), ("cand", MEAN - drop)):
                scores = np.clip(draw.normal(mean, spread, replicates), 0, 1)
                cells += [observe(CellKey(name, server, "m", at), float(score)) for at, score in enumerate(scores, 1)]
        verdicts[settle(cells, rules).verdict] += 1
    return {verdict: verdicts[verdict] / runs for verdict in Judgement}


def observe(cell: CellKey, score: float) -> Observation:
    """Return a graded cell."""
    return Observation(cell=cell, fate=CellFate.GRADED, score=score)


def main() -> None:
    """Print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    print(f"{runs} runs per figure; maxDrop {MAX_DROP}; scores around {MEAN}")
    print("| scenarios × replicates | sd | equal: pass | equal: fail | drop = max: pass | drop = 2 × max: fail |")
    print("|---|---|---|---|---|---|")
    for scenarios, replicates, spread in SIZES:
        rates = [
            simulate(scenarios, replicates, spread=spread, drop=drop, runs=runs)
            for drop in (0.0, MAX_DROP, 2 * MAX_DROP)
        ]
        figures = (
            rates[0][Judgement.PASS],
            rates[0][Judgement.FAIL],
            rates[1][Judgement.PASS],
            rates[2][Judgement.FAIL],
        )
        shown = " | ".join(f"{figure * 100:.0f} %" for figure in figures)
        print(f"| {scenarios} × {replicates} | {spread} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
