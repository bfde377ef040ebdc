"""What a run would do and may cost, before anything is started."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from proctor.core.ids import Arm
from proctor.core.reports.grid import Align, Grid, render_grid


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmPlan:
    """One arm's share of a run.

    Attributes:
        cells: its cells, controls left out.
        scripted: no provider is asked, so nothing is paid.
        usd: most that its cells may cost; None where the price is unknown.
    """

    arm: Arm
    cells: int
    scripted: bool
    usd: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanExtent:
    """A run of so many replicates.

    Attributes:
        arms: each arm's share.
        cells: all cells, controls included.
        usd: most that one attempt of every cell may cost; None where any price is unknown.
        judged_answers: answers that a judge grades, times its votes; 0 without a judge.
        seconds: most that all cells take, waiting for the provider left out.
    """

    replicates: int
    arms: tuple[ArmPlan, ...]
    cells: int
    usd: Decimal | None
    judged_answers: int
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReport:
    """A run before it starts.

    Attributes:
        suite: the suite's name.
        scenarios: name and volume of each.
        controls: number of control cells.
        most: the run with all its replicates.
        least: the run if its first block settles it; None where replicates are fixed.
        attempts: most attempts per cell: infrastructure retries may multiply the cost.
        deadline_seconds: when the run gives up.
        notes: fields that have no effect here.
    """

    suite: str
    scenarios: tuple[tuple[str, Decimal], ...]
    controls: int
    most: PlanExtent
    least: PlanExtent | None
    attempts: int
    deadline_seconds: int
    notes: tuple[str, ...] = ()


def render_plan(plan: PlanReport) -> str:
    """Render a plan for a terminal."""
    most, least = plan.most, plan.least or plan.most
    grid = Grid(
        titles=("server", "model", "cells", "at most"),
        aligns=(Align.LEFT, Align.LEFT, Align.RIGHT, Align.RIGHT),
        rows=tuple(
            (arm.arm.server, arm.arm.model, span(few.cells, arm.cells), _cost(arm))
            for few, arm in zip(least.arms, most.arms, strict=True)
        ),
    )
    scenarios = ", ".join(f"{name} (volume {volume:f})" for name, volume in plan.scenarios)
    counts = (_plural(len(plan.scenarios), "scenario"), _plural(len(most.arms), "arm"))
    product = f"{' × '.join(counts)} × {span(least.replicates, most.replicates)} replicates"
    lines = [
        f"{plan.suite}: {product} + {plan.controls} controls = {span(least.cells, most.cells)} cells",
        f"scenarios: {scenarios}",
        "",
        *render_grid(grid),
        "",
        f"cost: {_total(plan)}",
    ]
    if most.judged_answers:
        lines.append(f"judge: {most.judged_answers} judgements, more where votes lie apart; not in the cost above")
    lines.append(f"time: {_time(plan)}; the run gives up after {_duration(plan.deadline_seconds)}")
    lines.extend(f"ignored here: {note}" for note in plan.notes)
    return "\n".join(lines)


def span(least: int, most: int) -> str:
    """Render a number that may grow."""
    return str(most) if least == most else f"{least} to {most}"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _cost(arm: ArmPlan) -> str:
    if arm.scripted:
        return "nothing (scripted)"
    return "unknown (no price)" if arm.usd is None else f"${arm.usd:,.2f}"


def _total(plan: PlanReport) -> str:
    most, least = plan.most, plan.least
    if all(arm.scripted for arm in most.arms):
        return "nothing: all models are scripted"
    if most.usd is None:
        return "unknown: a model has no price"
    parts = [f"at most ${most.usd:,.2f}"]
    if least is not None and least.usd is not None:
        parts.append(f"${least.usd:,.2f} if the first {least.replicates} replicates settle it")
    if plan.attempts > 1:
        parts.append(f"${most.usd * plan.attempts:,.2f} if infrastructure failed every cell {plan.attempts - 1} times")
    return "; ".join(parts)


def _time(plan: PlanReport) -> str:
    most = f"cells at most {_duration(plan.most.seconds)}"
    return most if plan.least is None else f"{most}, {_duration(plan.least.seconds)} if the first block settles it"


def _duration(seconds: int) -> str:
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "min"), (seconds, "s"))
    return " ".join(f"{amount} {unit}" for amount, unit in parts if amount) or "0 s"
