"""Rules between the fields of a suite; all that are broken are reported at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from proctor.api.fields import MAX_ARMS, MAX_CELLS, Breach, repeated
from proctor.api.gate import Enforcement
from proctor.core.cron import find_cron_problem

if TYPE_CHECKING:
    from proctor.api.suite import EvalSuiteSpec

LEAST_REPLICATES_TO_ENFORCE = 3
"""Below this a bootstrap interval says nothing, so it may not stop anybody."""


def find_breaches(spec: EvalSuiteSpec) -> list[Breach]:
    """Return every rule between fields that a suite breaks."""
    return [
        *_check_names(spec),
        *_check_anchor(spec),
        *_check_totals(spec),
        *_check_budget(spec),
        *_check_judge(spec),
        *_check_gate(spec),
        *_check_baseline(spec),
        *_check_schedule(spec),
    ]


def _check_names(spec: EvalSuiteSpec) -> Iterator[Breach]:
    yield from repeated([scenario.name for scenario in spec.scenarios], "scenarios", "scenario")
    yield from repeated([server.name for server in spec.servers], "servers", "server")
    yield from repeated([model.name for model in spec.models], "models", "model")


def _check_anchor(spec: EvalSuiteSpec) -> Iterator[Breach]:
    if (spec.anchor is None) == (spec.anchor_policy is None):
        fix = 'write anchor: "2026-11-30T12:00:00Z", or anchorPolicy: LatestDay'
        yield Breach(("anchor",), "exactly one of anchor and anchorPolicy is needed", fix)


def _check_totals(spec: EvalSuiteSpec) -> Iterator[Breach]:
    arms = len(spec.servers) * len(spec.models)
    if arms > MAX_ARMS:
        yield Breach(("models",), f"{arms} arms are more than {MAX_ARMS}", "split the suite")
    replicates = spec.replicates
    field: tuple[str, ...] = ("replicates",)
    if spec.adaptive is not None:
        if spec.adaptive.max_replicates < spec.replicates:
            message = f"maxReplicates is below replicates ({spec.replicates})"
            yield Breach(("adaptive", "maxReplicates"), message, "raise it, or remove adaptive")
        if spec.adaptive.max_replicates > replicates:
            replicates, field = spec.adaptive.max_replicates, ("adaptive", "maxReplicates")
    total = arms * len(spec.scenarios) * replicates
    if total > MAX_CELLS:
        message = f"{len(spec.scenarios)} scenarios × {arms} arms × {replicates} replicates are {total} cells"
        yield Breach(field, f"{message}, more than {MAX_CELLS}", "lower it, or split the suite")


def _check_budget(spec: EvalSuiteSpec) -> Iterator[Breach]:
    if spec.agent.max_usd is None:
        return
    for index, model in enumerate(spec.models):
        if model.anthropic is not None and model.price is None:
            message = f"agent.maxUSD can't be kept: model {model.name!r} has no price"
            yield Breach(("models", index), message, "add price to the model, or remove agent.maxUSD")


def _check_judge(spec: EvalSuiteSpec) -> Iterator[Breach]:
    judge = spec.judge
    if judge.anthropic is None or judge.allow_self_judge:
        return
    for model in spec.models:
        if model.anthropic is not None and model.anthropic.model == judge.anthropic.model:
            message = f"the judge is also the agent's model {model.name!r} and may favour itself"
            fix = "choose another judge, or set judge.allowSelfJudge: true"
            yield Breach(("judge", "anthropic", "model"), message, fix)


def _check_gate(spec: EvalSuiteSpec) -> Iterator[Breach]:
    gate = spec.gate
    if gate.max_drop is not None and gate.baseline is None:
        yield Breach(("gate", "maxDrop"), "maxDrop has no baseline", "add gate.baseline, like {server: NAME}")
    if gate.enforcement is not Enforcement.ENFORCE:
        return
    if gate.minimum is None and gate.max_drop is None:
        yield Breach(("gate",), "an enforced gate has no threshold", "add minimum or maxDrop, or use Audit")
    if spec.replicates < LEAST_REPLICATES_TO_ENFORCE:
        message = f"an enforced gate needs at least {LEAST_REPLICATES_TO_ENFORCE} replicates"
        yield Breach(("replicates",), message, "raise replicates, or set gate.enforcement: Audit")


def _check_baseline(spec: EvalSuiteSpec) -> Iterator[Breach]:
    baseline = spec.gate.baseline
    if baseline is None:
        return
    choices = (
        ("server", baseline.server, [server.name for server in spec.servers]),
        ("model", baseline.model, [model.name for model in spec.models]),
    )
    for kind, name, known in choices:
        if name is None:
            continue
        path = ("gate", "baseline", kind)
        if name not in known:
            yield Breach(path, f"no {kind} of this suite is named {name!r}", f"one of: {', '.join(known)}")
        elif len(known) == 1:
            message = f"{kind} {name!r} is the only one, so there is nothing to compare with it"
            yield Breach(path, message, f"add a second {kind}, or remove the baseline")


def _check_schedule(spec: EvalSuiteSpec) -> Iterator[Breach]:
    problem = "" if spec.schedule is None else find_cron_problem(spec.schedule)
    if problem:
        message = f"{spec.schedule!r} names no time: {problem}"
        yield Breach(("schedule",), message, 'minute, hour, day, month and weekday, like "0 3 * * *" or "30 2 * * MON"')
