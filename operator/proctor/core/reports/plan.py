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
class PlanReport:
    """A run before it starts.

    Attributes:
        suite: the suite's name.
        scenarios: name and volume of each.
        controls: number of control cells.
        cells: all cells, controls included.
        attempts: most attempts per cell: infrastructure retries may multiply the cost.
        usd: most that one attempt of every cell may cost; None where any price is unknown.
        judged_answers: answers that a judge grades, times its votes; 0 without a judge.
        seconds: most that all cells take, waiting for the provider left out.
        deadline_seconds: when the run gives up.
        notes: fields that have no effect here.
    """

    suite: str
    scenarios: tuple[tuple[str, Decimal], ...]
    arms: tuple[ArmPlan, ...]
    controls: int
    cells: int
    replicates: int
    attempts: int
    usd: Decimal | None
    judged_answers: int
    seconds: int
    deadline_seconds: int
    notes: tuple[str, ...] = ()


def render_plan(plan: PlanReport) -> str:
    """Render a plan for a terminal."""
    grid = Grid(
        titles=("server", "model", "cells", "at most"),
        aligns=(Align.LEFT, Align.LEFT, Align.RIGHT, Align.RIGHT),
        rows=tuple((arm.arm.server, arm.arm.model, str(arm.cells), _cost(arm)) for arm in plan.arms),
    )
    scenarios = ", ".join(f"{name} (volume {volume:f})" for name, volume in plan.scenarios)
    product = (
        f"{_plural(len(plan.scenarios), 'scenario')} × {_plural(len(plan.arms), 'arm')} × {plan.replicates} replicates"
    )
    lines = [
        f"{plan.suite}: {product} + {plan.controls} controls = {plan.cells} cells",
        f"scenarios: {scenarios}",
        "",
        *render_grid(grid),
        "",
        f"cost: {_total(plan)}",
    ]
    if plan.judged_answers:
        lines.append(f"judge: up to {plan.judged_answers} judgements; a manifest has no price for them: unknown")
    lines.append(
        f"time: cells at most {_duration(plan.seconds)}; the run gives up after {_duration(plan.deadline_seconds)}"
    )
    lines.extend(f"ignored here: {note}" for note in plan.notes)
    return "\n".join(lines)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _cost(arm: ArmPlan) -> str:
    if arm.scripted:
        return "nothing (scripted)"
    return "unknown (no price)" if arm.usd is None else f"${arm.usd:,.2f}"


def _total(plan: PlanReport) -> str:
    if all(arm.scripted for arm in plan.arms):
        return "nothing: all models are scripted"
    if plan.usd is None:
        return "unknown: a model has no price"
    retried = f"; ${plan.usd * plan.attempts:,.2f} if infrastructure failed every cell {plan.attempts - 1} times"
    return f"at most ${plan.usd:,.2f}" + (retried if plan.attempts > 1 else "")


def _duration(seconds: int) -> str:
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "min"), (seconds, "s"))
    return " ".join(f"{amount} {unit}" for amount, unit in parts if amount) or "0 s"
