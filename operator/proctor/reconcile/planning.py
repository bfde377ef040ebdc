"""What a run of a suite would do and may cost at most."""

from __future__ import annotations

import math
from decimal import Decimal

from proctor.api.locality import ignored_locally
from proctor.api.model import Model
from proctor.api.suite import EvalSuite, EvalSuiteSpec
from proctor.core.ids import Arm
from proctor.core.reports.plan import ArmPlan, PlanExtent, PlanReport
from proctor.reconcile.cells import expand_cells, expand_controls, expand_judged, looks_of

_TOKENS_PER_PRICE = 1_000_000


def describe_plan(suite: EvalSuite) -> PlanReport:
    """Return the cells of a suite and their worst case; an unknown price is unknown, never 0."""
    spec = suite.spec
    looks = looks_of(spec)
    return PlanReport(
        suite=suite.metadata.name,
        scenarios=tuple((scenario.name, scenario.volume) for scenario in spec.scenarios),
        controls=len(expand_controls(spec)),
        most=_plan_extent(spec, looks[-1]),
        least=None if len(looks) == 1 else _plan_extent(spec, looks[0]),
        attempts=1 + spec.limits.infra_retries,
        deadline_seconds=spec.limits.active_deadline_seconds,
        notes=tuple(ignored_locally(spec)),
    )


def worst_cost_per_cell(spec: EvalSuiteSpec, model: Model) -> Decimal | None:
    """Return the most that one attempt may cost; None without a price.

    The gateway stops an attempt at its first budget, in dollars or in tokens; a token is at most as dear as the
    dearest kind.
    """
    if model.scripted is not None:
        return Decimal(0)
    if model.price is None:
        return None
    price = model.price
    dearest = max(price.input_per_mtok, price.output_per_mtok, price.cache_read_per_mtok, price.cache_write_per_mtok)
    by_tokens = dearest * spec.agent.max_tokens / _TOKENS_PER_PRICE
    return by_tokens if spec.agent.max_usd is None else min(by_tokens, spec.agent.max_usd)


def _plan_extent(spec: EvalSuiteSpec, replicates: int) -> PlanExtent:
    arms = tuple(_plan_arm(spec, server.name, model, replicates) for server in spec.servers for model in spec.models)
    known = [arm.usd for arm in arms if arm.usd is not None]
    cells = len(expand_cells(spec, replicates))
    return PlanExtent(
        replicates=replicates,
        arms=arms,
        cells=cells,
        usd=sum(known, Decimal(0)) if len(known) == len(arms) else None,
        judged_answers=len(expand_judged(spec, replicates)) * spec.judge.vote_count,
        seconds=math.ceil(cells / spec.parallelism) * spec.agent.deadline_seconds,
    )


def _plan_arm(spec: EvalSuiteSpec, server: str, model: Model, replicates: int) -> ArmPlan:
    cells = len(spec.scenarios) * replicates
    each = worst_cost_per_cell(spec, model)
    return ArmPlan(
        arm=Arm(server, model.name),
        cells=cells,
        scripted=model.scripted is not None,
        usd=None if each is None else each * cells,
    )
