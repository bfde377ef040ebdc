"""What has to stand before the first cell starts, in order: data, isolation, gateway, tool lists, grader."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.reconcile.observed import GraderState, Isolation, Observed, Readiness
from proctor.reconcile.plan import (
    Action,
    PrepareDataset,
    ProbeServers,
    ProveIsolation,
    ServeDataset,
    StartGateway,
    StartGrader,
)

MAX_STARTS = 4
"""One start and three restarts: enough for accidents, few enough that a crash loop ends in a clear error soon."""


def is_seeded(scenarios: Sequence[str], observed: Observed) -> bool:
    """Tell whether every scenario's dataset is committed."""
    return all(_prepared(observed, scenario) is Readiness.READY for scenario in scenarios)


def is_prepared(scenarios: Sequence[str], observed: Observed) -> bool:
    """Tell whether agents may start."""
    return (
        is_seeded(scenarios, observed)
        and _is_served(scenarios, observed)
        and _is_isolation_settled(observed)
        and observed.gateway.state is Readiness.READY
        and observed.probes is not None
    )


def plan_preparation(scenarios: Sequence[str], observed: Observed) -> list[Action]:
    """Return what to start next; each step waits for what it needs, and nothing is started twice."""
    missing = [name for name in scenarios if _prepared(observed, name) is Readiness.ABSENT]
    if missing:
        return [PrepareDataset(name) for name in missing]
    if not is_seeded(scenarios, observed):
        return []
    actions: list[Action] = [
        ServeDataset(name)
        for name in scenarios
        if name in observed.datasets and observed.datasets[name].served is Readiness.ABSENT
    ]
    if observed.isolation is Isolation.UNPROVEN:
        actions.append(ProveIsolation())
    if _is_served(scenarios, observed) and _is_isolation_settled(observed):
        actions += _plan_processes(observed)
    return actions


def _plan_processes(observed: Observed) -> list[Action]:
    if observed.gateway.state is Readiness.ABSENT:
        return [StartGateway()]
    if observed.gateway.state is not Readiness.READY:
        return []
    actions: list[Action] = []
    # After the gateway, which brings the store's schema up to date.
    if observed.grader.state in {GraderState.ABSENT, GraderState.FAILED}:
        actions.append(StartGrader())
    if observed.probes is None and not observed.probing:
        actions.append(ProbeServers())
    return actions


def _prepared(observed: Observed, scenario: str) -> Readiness:
    seen = observed.datasets.get(scenario)
    return Readiness.ABSENT if seen is None else seen.prepared


def _is_served(scenarios: Sequence[str], observed: Observed) -> bool:
    return all(name in observed.datasets and observed.datasets[name].served is Readiness.READY for name in scenarios)


def _is_isolation_settled(observed: Observed) -> bool:
    return observed.isolation in {Isolation.ENFORCED, Isolation.WAIVED}
