"""Which cells a suite has, and in which order they start."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable

from proctor.api.suite import EvalSuiteSpec
from proctor.core.ids import Arm, CellKey, Control
from proctor.core.stats.sequential import plan_looks


def looks_of(spec: EvalSuiteSpec) -> tuple[int, ...]:
    """Return the replicates after which a run's verdict may be settled; the last are the most that it may have."""
    most = spec.replicates if spec.adaptive is None else spec.adaptive.max_replicates
    return plan_looks(spec.replicates, most)


def expand_cells(spec: EvalSuiteSpec, replicates: int | None = None) -> tuple[CellKey, ...]:
    """Return all cells of a suite, controls first: one oracle and one noop per scenario and server.

    Args:
        spec: the suite.
        replicates: how many a run of it has by now; None for those that it begins with.
    """
    return (*expand_controls(spec), *expand_judged(spec, replicates))


def expand_controls(spec: EvalSuiteSpec) -> tuple[CellKey, ...]:
    """Return the control cells, which run first and show that the instrument works."""
    return tuple(
        CellKey.for_control(scenario.name, server.name, control)
        for scenario in spec.scenarios
        for server in spec.servers
        for control in Control
    )


def expand_judged(spec: EvalSuiteSpec, replicates: int | None = None) -> tuple[CellKey, ...]:
    """Return the cells that the verdict is about: scenario × server × model × replicate."""
    count = spec.replicates if replicates is None else replicates
    return tuple(
        CellKey(scenario.name, server.name, model.name, replicate)
        for scenario in spec.scenarios
        for server in spec.servers
        for model in spec.models
        for replicate in range(1, count + 1)
    )


def interleave(cells: Iterable[CellKey], seed: int) -> tuple[CellKey, ...]:
    """Order cells so that time favours no arm: controls first, then rounds of one cell per arm (grading rule 10).

    Scenario and replicate are drawn in a seeded order that all arms share, so that the cells of a pair run close
    together; within a round, the arms' order is drawn anew.

    Args:
        cells: the cells, in any order.
        seed: fixes the order on every machine; the run's own.
    """
    every = sorted(cells)
    draw = random.Random(seed)  # noqa: S311 - an order that can be repeated, not a secret
    controls = [cell for cell in every if cell.control is not None]
    rounds: dict[tuple[str, int], dict[Arm, CellKey]] = defaultdict(dict)
    for cell in every:
        if cell.control is None:
            rounds[cell.scenario, cell.replicate][cell.arm] = cell
    coordinates = list(rounds)
    draw.shuffle(controls)
    draw.shuffle(coordinates)
    judged: list[CellKey] = []
    for coordinate in coordinates:
        members = list(rounds[coordinate].values())
        draw.shuffle(members)
        judged.extend(members)
    return (*controls, *judged)
