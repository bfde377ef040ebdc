"""Which open attempts have to be stopped, and which ends the gateway must be told of."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import assert_never

from proctor.core.trajectory.outcome import ExitCause, ProcessExit
from proctor.reconcile.observed import AttemptSeen, AttemptState
from proctor.reconcile.plan import Action, EndAttempt, StopAttempt


def plan_endings(
    attempts: Iterable[AttemptSeen], now: datetime, *, deadline: timedelta, pending_deadline: timedelta
) -> list[Action]:
    """Return the stops and ends that are due.

    Args:
        attempts: open attempts.
        now: the instant of the pass.
        deadline: time that an agent has, waiting for its provider not counted.
        pending_deadline: time that a sandbox has to start.
    """
    actions: list[Action] = []
    for attempt in attempts:
        match attempt.state:
            case AttemptState.STARTING:
                if now - attempt.created > pending_deadline and not attempt.stopping:
                    actions.append(StopAttempt(attempt.key, ExitCause.LOST))
            case AttemptState.RUNNING:
                if _is_overdue(attempt, now, deadline) and not attempt.stopping:
                    actions.append(StopAttempt(attempt.key, ExitCause.DEADLINE))
            case AttemptState.EXITED:
                actions.append(EndAttempt(attempt.key, _exit_of(attempt)))
            case AttemptState.LOST:
                if attempt.exit is None and not attempt.stopping:
                    actions.append(StopAttempt(attempt.key, ExitCause.LOST))
            case AttemptState.ENDING:
                pass
            case _:
                assert_never(attempt.state)
    return actions


def plan_withdrawal(attempts: Iterable[AttemptSeen]) -> list[Action]:
    """Return what ends every open attempt, because the run ends before they do."""
    actions: list[Action] = []
    for attempt in attempts:
        if attempt.state is AttemptState.EXITED:
            actions.append(EndAttempt(attempt.key, _exit_of(attempt)))
        elif attempt.exit is None and not attempt.stopping:
            actions.append(StopAttempt(attempt.key, ExitCause.CANCELLED))
    return actions


def next_deadline(attempts: Iterable[AttemptSeen], *, deadline: timedelta, pending: timedelta) -> datetime | None:
    """Return when the first open attempt will be overdue, if nothing else happens; None with none open."""
    instants = []
    for attempt in attempts:
        if attempt.stopping:
            continue
        if attempt.state is AttemptState.STARTING:
            instants.append(attempt.created + pending)
        elif attempt.state is AttemptState.RUNNING:
            instants.append(_overdue_at(attempt, deadline))
    return min(instants, default=None)


def _overdue_at(attempt: AttemptSeen, deadline: timedelta) -> datetime:
    began = attempt.running or attempt.created
    return began + deadline + timedelta(microseconds=attempt.waited_us)


def _is_overdue(attempt: AttemptSeen, now: datetime, deadline: timedelta) -> bool:
    return now > _overdue_at(attempt, deadline)


def _exit_of(attempt: AttemptSeen) -> ProcessExit:
    return attempt.exit or ProcessExit(ExitCause.LOST, None, "its process ended unseen")
