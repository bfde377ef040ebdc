"""Cron times, in UTC: which is due, and which comes next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError

_ANY_INSTANT = datetime(2000, 1, 1, tzinfo=UTC)
_MOMENT = timedelta(microseconds=1)


def find_cron_problem(cron: str) -> str:
    """Say why text of five fields names no times; empty where it does."""
    try:
        next_due(cron, _ANY_INSTANT)
    except (CronSimError, StopIteration) as error:
        return str(error) or "it never comes"
    return ""


def last_due(cron: str, now: datetime) -> datetime:
    """Return the newest time that is not after ``now``; the text is one that has no problem."""
    # A time that is exactly now is due; the iterator begins before the instant that it is given.
    return next(CronSim(cron, now.astimezone(UTC) + _MOMENT, reverse=True))


def next_due(cron: str, now: datetime) -> datetime:
    """Return the first time after ``now``; the text is one that has no problem."""
    return next(CronSim(cron, now.astimezone(UTC)))
