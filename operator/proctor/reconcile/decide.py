"""The decision of one pass: what a run needs next, from the run and what was seen of its children, and nothing else.

The same function drives one machine and a cluster. It remembers nothing: whoever calls it may die at any line, and
the next call — with what exists then — goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache

from proctor.api.run import Verdict
from proctor.core.ids import CellKey
from proctor.core.trajectory.outcome import ExitCause
from proctor.reconcile.cells import interleave
from proctor.reconcile.ending import plan_endings, plan_withdrawal
from proctor.reconcile.fixing import is_fixed
from proctor.reconcile.halting import Halt, find_halt
from proctor.reconcile.look import Look, take_look
from proctor.reconcile.observed import GraderState, Observed, Readiness
from proctor.reconcile.plan import Action, FinishGrading, Plan, ReleaseChildren, StopAttempt
from proctor.reconcile.preparing import plan_preparation
from proctor.reconcile.scheduling import plan_starts
from proctor.reconcile.settling import find_control_halt, settle_run, summarise_progress
from proctor.reconcile.snapshot import RunSnapshot
from proctor.reconcile.status import Sentence, build_status


def decide(run: RunSnapshot, observed: Observed, now: datetime) -> Plan:
    """Decide one pass.

    Args:
        run: the run with its frozen suite and its last status.
        observed: its children as they are now.
        now: the instant of the pass.

    Returns:
        The effects to bring about and the status to write; `Plan.empty` when nothing is left to do until something
        new is seen.
    """
    if run.status.terminal:
        return _close(run, observed)
    halt = find_halt(run, observed, now)
    look = take_look(run, observed, now, may_grow=halt is None)
    halt = halt or find_control_halt(run, look.progress)
    if halt is not None:
        return _halt(look, halt)
    if look.ran and observed.grader.state is GraderState.FINISHED:
        return _settle(look)
    return _advance(look)


def _close(run: RunSnapshot, observed: Observed) -> Plan:
    """A terminal run keeps its verdict for ever; only its children are put away, and its generation is followed."""
    status = run.status
    if status.observed_generation != run.generation:
        status = status.model_copy(update={"observed_generation": run.generation})
    actions: tuple[Action, ...] = (ReleaseChildren(),) if _has_children(observed) else ()
    return Plan(actions, status, changed=status != run.status)


def _has_children(observed: Observed) -> bool:
    return (
        observed.gateway.state in {Readiness.STARTING, Readiness.READY}
        or observed.grader.state is GraderState.RUNNING
        or any(seen.served in {Readiness.STARTING, Readiness.READY} for seen in observed.datasets.values())
        or any(attempt.exit is None for attempt in observed.attempts)
    )


def _halt(look: Look, halt: Halt) -> Plan:
    """Stop what runs; the verdict follows once no agent runs any more."""
    observed = look.observed
    actions = plan_withdrawal(observed.attempts)
    if observed.gateway.state is not Readiness.READY:
        actions = _only_stops(actions)
    stopping = bool(actions) or any(attempt.exit is None for attempt in observed.attempts)
    verdict = Verdict.PENDING if stopping else halt.verdict
    return _plan(look, actions, Sentence(verdict=verdict, reason=halt.reason, summary=halt.summary))


def _settle(look: Look) -> Plan:
    findings = settle_run(look.run, look.progress)
    return _plan(look, [], Sentence(verdict=findings.verdict, reason=findings.reason, summary=findings.summary))


def _advance(look: Look) -> Plan:
    grader = look.observed.grader
    actions: list[Action] = []
    if not look.ran or grader.state is not GraderState.RUNNING:
        actions += plan_preparation(look.run.scenarios, look.observed)
    actions += _plan_endings(look)
    if look.ran and grader.state is GraderState.RUNNING and not grader.finishing and not look.awaits_growth:
        actions.append(FinishGrading())
    if is_fixed(look.run) and look.prepared and not look.run.suspend:
        parallelism = look.run.suite.parallelism
        actions += plan_starts(_runnable(look), look.by_key, run_uid=look.run.uid, parallelism=parallelism)
    return _plan(
        look, actions, Sentence(verdict=Verdict.PENDING, reason="", summary=summarise_progress(look.run, look.progress))
    )


def _plan_endings(look: Look) -> list[Action]:
    attempts = look.observed.attempts
    if look.observed.gateway.state is not Readiness.READY:
        # Their gateway is gone, and with it their only door.
        return _only_stops(plan_withdrawal(attempts))
    superseded: list[Action] = [
        StopAttempt(cell.live.key, ExitCause.CANCELLED)
        for cell in look.progress
        if cell.valid is not None and cell.live is not None and cell.live.exit is None and not cell.live.stopping
    ]
    suite = look.run.suite
    return superseded + plan_endings(
        attempts,
        look.now,
        deadline=timedelta(seconds=suite.agent.deadline_seconds),
        pending_deadline=timedelta(seconds=suite.limits.pending_deadline_seconds),
    )


def _only_stops(actions: Sequence[Action]) -> list[Action]:
    return [action for action in actions if isinstance(action, StopAttempt)]


def _runnable(look: Look) -> tuple[CellKey, ...]:
    """Return the cells that may start: the controls alone until all of them are graded."""
    order = _order_cells(tuple(cell.key for cell in look.progress), look.run.order_seed)
    if look.controls_final:
        return order
    return tuple(key for key in order if key.control is not None)


@lru_cache(maxsize=64)
def _order_cells(cells: tuple[CellKey, ...], seed: int) -> tuple[CellKey, ...]:
    """Return the order of a run, which never changes; with 2,000 cells it is worth remembering between passes."""
    return interleave(cells, seed)


def _plan(look: Look, actions: Sequence[Action], sentence: Sentence) -> Plan:
    terminal = sentence.verdict is not Verdict.PENDING
    # Also a run that was stopped says what its graded cells showed.
    findings = settle_run(look.run, look.progress) if terminal else None
    status = build_status(look, sentence, findings)
    return Plan(tuple(actions), status, changed=status != look.run.status)
