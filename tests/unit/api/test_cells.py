"""Which cells a suite has, in which order, and what they may cost."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pytest

from proctor.core.reports.plan import render_plan
from proctor.reconcile.cells import expand_cells, expand_controls, interleave
from proctor.reconcile.planning import describe_plan, worst_cost_per_cell
from support.manifests import real_model, suite

TWO = [{"name": "newest", "scripted": {"policy": "newest"}}, {"name": "loudest", "scripted": {"policy": "loudest"}}]


def test_cells_are_the_product_and_one_control_of_each_kind_per_scenario_and_server() -> None:
    """M-A5, manifest's controls: scenario × arm × replicate, controls first."""
    spec = suite(models=TWO, scenarios=[{"name": "a"}, {"name": "b"}]).spec
    cells = expand_cells(spec)
    assert len(cells) == len(set(cells)) == 2 * 2 * 2 * 3 + 2 * 2 * 2
    assert all(cell.control is not None for cell in cells[:8])
    assert expand_controls(spec) == cells[:8]


def test_time_favours_no_arm() -> None:
    """Grading rule 10: interleaved over arms in a seeded random order; every round has one cell of each arm."""
    cells = expand_cells(suite(models=TWO).spec)
    order = interleave(cells, 7)
    assert order == interleave(reversed(cells), 7)
    assert order != interleave(cells, 8)
    assert sorted(order) == sorted(cells)
    judged = [cell for cell in order if cell.control is None]
    assert all(cell.control is not None for cell in order[:4])
    for start in range(0, len(judged), 4):
        assert set(Counter(cell.arm for cell in judged[start : start + 4]).values()) == {1}
    assert len({tuple(cell.arm for cell in judged[start : start + 4]) for start in range(0, len(judged), 4)}) > 1


@pytest.mark.parametrize(
    ("model", "agent", "cost"),
    [
        pytest.param(real_model(), {"maxUSD": "2", "maxTokens": 400_000}, Decimal(2), id="dollars"),
        pytest.param(real_model(), {"maxTokens": 40_000}, Decimal(1), id="tokens-at-the-dearest-price"),
        pytest.param(real_model(), {"maxUSD": "2", "maxTokens": 40_000}, Decimal(1), id="the-lower-of-both"),
        pytest.param(real_model(price=False), {}, None, id="no-price-is-unknown"),
        pytest.param(TWO[0], {}, Decimal(0), id="scripted"),
    ],
)
def test_the_worst_case_is_the_first_budget_reached(
    model: dict[str, object], agent: dict[str, object], cost: Decimal | None
) -> None:
    """Dry run: what the cells may cost; no price is unknown, never 0."""
    spec = suite(models=[model], agent=agent).spec
    assert worst_cost_per_cell(spec, spec.models[0]) == cost


def test_one_unknown_price_makes_the_total_unknown() -> None:
    """Dry run: no price ⇒ unknown, never 0."""
    plan = describe_plan(suite(models=[real_model(), real_model("other", "claude-y", price=False)]))
    assert plan.most.usd is None
    assert "unknown" in render_plan(plan)
    assert "$0" not in render_plan(plan)


def test_the_plan_shows_cells_cost_and_what_is_ignored() -> None:
    """Dry run: cells, worst-case cost with and without retries, ignored fields."""
    told = render_plan(describe_plan(suite(models=[real_model()], agent={"maxUSD": "2"}, runOnChange=True)))
    assert "1 scenario × 2 arms × 3 replicates + 4 controls = 10 cells" in told
    assert "at most $12.00; $36.00" in told
    assert "ignored here: spec.runOnChange" in told
    assert max(len(line) for line in told.splitlines()) <= 110


def test_the_plan_of_a_growing_run_shows_the_least_and_the_most() -> None:
    """Dry run, adaptive: cells, cost and time if the first block settles it, and if all replicates are used."""
    growing = suite(models=[real_model()], agent={"maxUSD": "2"}, adaptive={"maxReplicates": 12})
    plan = describe_plan(growing)
    assert plan.least is not None
    assert (plan.least.replicates, plan.least.cells, plan.least.usd) == (3, 10, Decimal(12))
    assert (plan.most.replicates, plan.most.cells, plan.most.usd) == (12, 28, Decimal(48))
    told = render_plan(plan)
    assert "1 scenario × 2 arms × 3 to 12 replicates + 4 controls = 10 to 28 cells" in told
    assert "at most $48.00; $12.00 if the first 3 replicates settle it; $144.00 if infrastructure" in told
    assert sum("  3 to 12  " in line for line in told.splitlines()) == 2
    assert "if the first block settles it; the run gives up" in told
    assert describe_plan(suite(adaptive={"maxReplicates": 3})).least is None


def test_what_a_judge_may_cost_is_not_hidden_in_the_total() -> None:
    """Dry run: a judge's calls are counted, and said to be beside the cost, whether it has a price or not."""
    price = {"inputPerMTok": "3", "outputPerMTok": "15", "cacheReadPerMTok": "0.3", "cacheWritePerMTok": "3.75"}
    judge = {"anthropic": {"model": "claude-j", "secretKeyRef": {"name": "a", "key": "k"}}, "votes": 3}
    for told in (judge, {**judge, "price": price}):
        plan = render_plan(describe_plan(suite(models=[real_model()], judge=told)))
        assert "judge: 18 judgements, more where votes lie apart; not in the cost above" in plan
