"""Cron times, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from proctor.core.cron import find_cron_problem, last_due, next_due
from support.manifests import manifest, text

THREE = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)


def test_a_time_is_due_from_its_first_moment_on() -> None:
    assert last_due("0 3 * * *", THREE) == THREE
    assert last_due("0 3 * * *", THREE - MOMENT) == THREE - timedelta(days=1)
    assert next_due("0 3 * * *", THREE) == THREE + timedelta(days=1)
    assert next_due("0 3 * * *", THREE - MOMENT) == THREE


def test_times_are_utc_wherever_the_operator_is() -> None:
    there = timezone(timedelta(hours=5))
    assert last_due("30 2 * * MON", THREE.astimezone(there)) == datetime(2026, 11, 30, 2, 30, tzinfo=UTC)


@pytest.mark.parametrize("cron", ["61 * * * *", "0 0 30 2 *", "0 25 * * *", "0 0 * * 9", "0 0 * * 1L/2", "5-1 * * * *"])
def test_text_that_names_no_time_is_refused(cron: str) -> None:
    assert find_cron_problem(cron)
    from proctor.api.loading import InvalidManifest, parse_suite

    with pytest.raises(InvalidManifest, match=r"spec\.schedule: .* names no time"):
        parse_suite(text(manifest(schedule=cron)), file="suite.yaml")


@pytest.mark.parametrize("cron", ["0 3 * * *", "*/15 * * * *", "0 0 1,15 * MON-FRI", "30 2 L * *", "0 0 29 2 *"])
def test_ordinary_schedules_are_fine(cron: str) -> None:
    assert find_cron_problem(cron) == ""
