"""The suite's gate → the rules that statistics hold a run to."""

from __future__ import annotations

from bisect import bisect_left

from proctor.api.suite import EvalSuiteSpec
from proctor.core.stats.observations import Baseline, BaselineArm, FormerSelves, GateRules, Side
from proctor.core.stats.sequential import tails_of
from proctor.reconcile.cells import looks_of

LAST_PASSED_SUFFIX = "-last-passed"
"""Ends the name of a server that runs the image of the last run that passed, beside the one that is judged."""


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
        baseline=find_baseline(suite),
        baseline_missing=_lacks_baseline(suite),
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


def find_baseline(suite: EvalSuiteSpec) -> Baseline | None:
    """Return what the candidates of a suite are compared with; None where there is nothing."""
    baseline = suite.gate.baseline
    if baseline is None:
        return None
    if baseline.server is not None:
        return BaselineArm(Side.SERVER, baseline.server)
    if baseline.model is not None:
        return BaselineArm(Side.MODEL, baseline.model)
    again = repeated_servers(suite)
    return FormerSelves(tuple(again.items())) if again else None


def repeated_servers(suite: EvalSuiteSpec) -> dict[str, str]:
    """Return by server the one that runs its last passed image, as whoever froze the suite added it."""
    if suite.gate.baseline is None or not suite.gate.baseline.last_passed:
        return {}
    names = {server.name for server in suite.servers}
    return {name: f"{name}{LAST_PASSED_SUFFIX}" for name in names if f"{name}{LAST_PASSED_SUFFIX}" in names}


def _lacks_baseline(suite: EvalSuiteSpec) -> bool:
    """Say whether a server is to be compared with an image that passed, and none did."""
    if suite.gate.baseline is None or not suite.gate.baseline.last_passed:
        return False
    again = repeated_servers(suite)
    return any(server.name not in {*again, *again.values()} for server in suite.servers)
