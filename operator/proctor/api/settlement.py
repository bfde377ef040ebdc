"""Between the manifest's types and the statistics': rules in, figures out, floats turned into text-safe decimals."""

from __future__ import annotations

from decimal import Decimal

from proctor.api.gate import Baseline
from proctor.api.run import ArmStatus, ComparisonStatus, ControlsStatus, Estimate
from proctor.api.suite import EvalSuiteSpec
from proctor.core.stats import (
    ArmFigures,
    BaselineArm,
    CellFate,
    Comparison,
    ControlScores,
    GateRules,
    Interval,
    Settlement,
    Side,
)

_FOUR_PLACES = Decimal("0.0001")


def build_rules(spec: EvalSuiteSpec, *, seed: int) -> GateRules:
    """Return what a run of a suite is held to.

    Args:
        spec: the frozen suite.
        seed: fixes resampling; the run's own.
    """
    gate = spec.gate
    return GateRules(
        minimum=_float(gate.minimum),
        max_drop=_float(gate.max_drop),
        baseline=_baseline(gate.baseline),
        baseline_missing=gate.baseline is not None and gate.baseline.last_passed is True,
        max_infra_percent=gate.max_infra_errored_percent,
        max_ungraded_percent=gate.max_ungraded_percent,
        oracle_at_least=float(gate.controls.oracle_at_least),
        noop_at_most=float(gate.controls.noop_at_most),
        played_through=frozenset(server.name for server in spec.servers if server.sql_tool is not None),
        seed=seed,
        **({} if gate.minimum is None else {"success_at": float(gate.minimum)}),
    )


def arm_statuses(settlement: Settlement) -> tuple[ArmStatus, ...]:
    """Return the figures of each arm over all scenarios, as the status has them."""
    return tuple(_arm_status(arm) for arm in settlement.arms)


def comparison_statuses(settlement: Settlement) -> tuple[ComparisonStatus, ...]:
    """Return the comparisons, as the status has them."""
    return tuple(_comparison_status(comparison) for comparison in settlement.comparisons)


def controls_status(scores: ControlScores) -> ControlsStatus:
    """Return the worst control scores, as the status has them."""
    return ControlsStatus(oracle=to_figure(scores.oracle), noop=to_figure(scores.noop))


def to_figure(value: float | None) -> Decimal | None:
    """Round to four places; a rounded zero loses its sign."""
    if value is None:
        return None
    return Decimal(str(value)).quantize(_FOUR_PLACES) + Decimal(0)


def _float(value: Decimal | None) -> float | None:
    return None if value is None else float(value)


def _baseline(baseline: Baseline | None) -> BaselineArm | None:
    if baseline is None:
        return None
    if baseline.server is not None:
        return BaselineArm(Side.SERVER, baseline.server)
    if baseline.model is not None:
        return BaselineArm(Side.MODEL, baseline.model)
    return None  # lastPassed: there is none until an earlier run's arms are part of this one


def _estimate(interval: Interval | None) -> Estimate | None:
    if interval is None:
        return None
    return Estimate(mean=_figure(interval.mean), low=_figure(interval.low), high=_figure(interval.high))


def _figure(value: float) -> Decimal:
    return Decimal(str(value)).quantize(_FOUR_PLACES) + Decimal(0)


def _arm_status(arm: ArmFigures) -> ArmStatus:
    return ArmStatus(
        server=arm.arm.server,
        model=arm.arm.model,
        score=_estimate(arm.score),
        standard_deviation=to_figure(arm.spread),
        deterministic=arm.score is not None and arm.score.deterministic,
        graded=arm.fates.get(CellFate.GRADED, 0),
        tool_calls=None if arm.tool_calls is None else f"{arm.tool_calls:.1f}",
        tokens=arm.tokens,
        usd=None if arm.usd is None else arm.usd.quantize(Decimal("0.000001")),
        seconds=None if arm.seconds is None else f"{arm.seconds:.1f}",
        consistency=to_figure(arm.consistency),
    )


def _comparison_status(comparison: Comparison) -> ComparisonStatus:
    candidate, baseline = comparison.candidate, comparison.baseline
    same_model = candidate.model == baseline.model
    delta = comparison.delta
    return ComparisonStatus(
        model=candidate.model if same_model else None,
        server=None if same_model else candidate.server,
        baseline=baseline.server if same_model else baseline.model,
        candidate=candidate.server if same_model else candidate.model,
        pairs=comparison.pairs,
        delta=None if delta is None else _figure(delta.mean),
        low=None if delta is None else _figure(delta.low),
        high=None if delta is None else _figure(delta.high),
        minimum_detectable=to_figure(comparison.minimum_detectable),
        p=to_figure(comparison.p),
        replicates_needed=comparison.replicates_needed,
    )
