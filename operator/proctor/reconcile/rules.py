"""The suite's gate → the rules that statistics hold a run to."""

from __future__ import annotations

from bisect import bisect_left

from proctor.api.gate import Baseline
from proctor.api.suite import EvalSuiteSpec
from proctor.core.stats.observations import BaselineArm, GateRules, Side
from proctor.core.stats.sequential import tails_of
from proctor.reconcile.cells import looks_of


def build_rules(suite: EvalSuiteSpec, *, seed: int, replicates: int | None = None) -> GateRules:
    """Return what a suite holds its runs to.

    Args:
        suite: as the run froze it.
        seed: of resampling; the same wherever figures of one run are made, so that they agree.
        replicates: that the run has when it is looked at; None for those that it began with.
    """
    gate = suite.gate
    looks = looks_of(suite)
    look = bisect_left(looks, min(replicates or looks[0], looks[-1]))
    return GateRules(
        minimum=None if gate.minimum is None else float(gate.minimum),
        max_drop=None if gate.max_drop is None else float(gate.max_drop),
        baseline=find_baseline(gate.baseline),
        # The images of an earlier run are run again by whoever makes the run; what is left of it here is their absence.
        baseline_missing=gate.baseline is not None and gate.baseline.last_passed is True,
        max_infra_percent=gate.max_infra_errored_percent,
        max_ungraded_percent=gate.max_ungraded_percent,
        oracle_at_least=float(gate.controls.oracle_at_least),
        noop_at_most=float(gate.controls.noop_at_most),
        played_through=frozenset(server.name for server in suite.servers if server.sql_tool is not None),
        scripted=scripted_models(suite),
        seed=seed,
        tail=tails_of(looks)[look],
    )


def scripted_models(suite: EvalSuiteSpec) -> frozenset[str]:
    """Return the models whose scores have no chance in them: scripted ones, unless a judge's model grades them."""
    if suite.judge.anthropic is not None:
        return frozenset()
    return frozenset(model.name for model in suite.models if model.scripted is not None)


def find_baseline(baseline: Baseline | None) -> BaselineArm | None:
    """Return the side of the suite that candidates are compared with; None where it names none of its own."""
    if baseline is None:
        return None
    if baseline.server is not None:
        return BaselineArm(Side.SERVER, baseline.server)
    return None if baseline.model is None else BaselineArm(Side.MODEL, baseline.model)
