"""A run's EvalRun, suite, cells and trajectories → what its page shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from proctor.api.run import EvalRun, JudgeStatus
from proctor.api.suite import EvalSuiteSpec
from proctor.clock import format_instant
from proctor.core.ids import CellKey, Control
from proctor.core.reports.page import (
    CellFacts,
    CellTrajectory,
    ControlFacts,
    Fact,
    JudgeFacts,
    MarkFacts,
    RunFacts,
    RunLimits,
)
from proctor.core.stats.tools import ToolFigures
from proctor.core.trajectory.outcome import Outcome
from proctor.reconcile.result import report_result

WAIVED = "Waived"
"""Reason of a condition that somebody chose to do without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredParts:
    """What the results store has of a run.

    Attributes:
        trajectories: by cell.
        tools: figures per arm and tool.
        whole: of how many cells bodies were looked for; None if of all.
    """

    trajectories: Mapping[CellKey, CellTrajectory] = field(default_factory=dict)
    tools: tuple[ToolFigures, ...] = ()
    whole: int | None = None


def build_run_facts(
    run: EvalRun, suite: EvalSuiteSpec, cells: Sequence[Mapping[str, Any]], *, version: str
) -> RunFacts:
    """Return what a run's page shows, but for what the results store has.

    Args:
        run: with its last status; verdict and controls are taken from it, never made anew.
        suite: as the run froze it.
        cells: as run.json has them.
        version: of Proctor.
    """
    status, gate = run.status, suite.gate
    facts = tuple(read_cell(cell) for cell in cells)
    return RunFacts(
        result=report_result(run, suite, cells),
        suite=run.spec.suite_ref.name,
        enforcement=status.enforcement.value if status.enforcement is not None else "",
        limits=RunLimits(
            minimum=None if gate.minimum is None else float(gate.minimum),
            max_drop=None if gate.max_drop is None else float(gate.max_drop),
            oracle_at_least=float(gate.controls.oracle_at_least),
            noop_at_most=float(gate.controls.noop_at_most),
            replicates=suite.replicates,
            max_replicates=None if suite.adaptive is None else suite.adaptive.max_replicates,
        ),
        counts={name: count for name, count in status.cells.model_dump().items() if name != "total"},
        controls=_pair_controls(facts),
        judge=_describe_judge(status.judge),
        cells=facts,
        notes=tuple(condition.message for condition in status.conditions if condition.reason == WAIVED),
        identity=tuple(_identify(run, suite, version)),
        started=status.started,
        ended=status.ended,
        version=version,
    )


def add_stored(facts: RunFacts, stored: StoredParts) -> RunFacts:
    """Return the same with what the results store has."""
    return replace(facts, tools=stored.tools, trajectories=stored.trajectories, whole=stored.whole)


def read_cell(cell: Mapping[str, Any]) -> CellFacts:
    """Read one cell of run.json."""
    score, usd, outcome = cell.get("score"), cell.get("usd"), cell.get("outcome")
    errors = cell.get("toolErrors") or {}
    programmatic = cell.get("programmatic") or {}
    return CellFacts(
        key=CellKey.parse(cell["cell"]),
        state=cell.get("state", ""),
        score=None if score is None else Decimal(score),
        outcome=None if outcome is None else Outcome(outcome),
        reason=cell.get("reason", ""),
        ungraded=cell.get("ungraded", ""),
        remark=programmatic.get("remark", ""),
        attempts=cell.get("attempts", 0),
        attempt=cell.get("attempt", 0),
        turns=cell.get("turns", 0),
        tool_calls=cell.get("toolCalls", 0),
        tool_errors=errors.get("agent", 0) + errors.get("server", 0),
        input_tokens=cell.get("inputTokens", 0),
        output_tokens=cell.get("outputTokens", 0),
        usd=None if usd is None else Decimal(usd),
        seconds=float(cell.get("seconds", 0.0)),
        waited=float(cell.get("waitedSeconds", 0.0)),
        programmatic=str(programmatic.get("score", "")),
        judge=str(cell.get("judge") or ""),
        penalty=str(cell.get("penalty", "")),
        marks=(*_read_checks(programmatic), *_read_judged(cell.get("judgement") or {})),
    )


def _read_checks(programmatic: Mapping[str, Any]) -> Iterator[MarkFacts]:
    for check in programmatic.get("checks", ()):
        yield MarkFacts(
            id=str(check.get("id", "")),
            weight=str(check.get("weight", "")),
            why=str(check.get("why", "")),
            judged=False,
            polarity=str(check.get("polarity", "")),
            satisfied=check.get("satisfied") is True,
        )


def _read_judged(judgement: Mapping[str, Any]) -> Iterator[MarkFacts]:
    for mark in judgement.get("marks", ()):
        yield MarkFacts(
            id=str(mark.get("id", "")),
            weight=str(mark.get("weight", "")),
            why=str(mark.get("why", "")),
            judged=True,
            score=str(mark.get("score", "")),
            votes=tuple(mark.get("votes", ())),
        )


def _pair_controls(cells: Sequence[CellFacts]) -> tuple[ControlFacts, ...]:
    scores = {(cell.key.scenario, cell.key.server, cell.key.control): cell.score for cell in cells if cell.key.control}
    places = dict.fromkeys((scenario, server) for scenario, server, _ in scores)
    return tuple(
        ControlFacts(
            scenario=scenario,
            server=server,
            oracle=scores.get((scenario, server, Control.ORACLE)),
            noop=scores.get((scenario, server, Control.NOOP)),
        )
        for scenario, server in places
    )


def _describe_judge(judge: JudgeStatus | None) -> JudgeFacts | None:
    if judge is None:
        return None
    return JudgeFacts(
        model=judge.model,
        votes=judge.votes,
        agreement=judge.agreement,
        input_tokens=judge.input_tokens,
        output_tokens=judge.output_tokens,
    )


def _identify(run: EvalRun, suite: EvalSuiteSpec, version: str) -> Iterator[Fact]:
    status, digests = run.status, run.status.digests
    yield Fact("Run", run.metadata.name)
    yield Fact("Run uid", run.metadata.uid or "")
    yield Fact("Proctor", version)
    if status.started is not None:
        yield Fact("Started", format_instant(status.started))
    if status.ended is not None:
        yield Fact("Ended", format_instant(status.ended))
    if suite.anchor is not None:
        yield Fact("Anchor time", format_instant(suite.anchor))
    yield Fact("Agent", suite.agent.runtime.value)
    for name, digest in (
        ("Suite", digests.suite),
        ("Rubric", digests.rubric),
        ("Judge", digests.judge),
        ("Gate", digests.gate),
    ):
        if digest is not None:
            yield Fact(f"{name} digest", digest)
    yield from (Fact(f"Dataset seed of {ref.name}", str(ref.seed)) for ref in suite.scenarios)
    yield from (Fact(f"Dataset of {name}", digest) for name, digest in digests.datasets.items())
    yield from (Fact(f"Tools of {name}", digest) for name, digest in digests.tools.items())
