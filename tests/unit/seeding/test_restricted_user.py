"""The user as whom servers under test query a ClickHouse of one's own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.restricted import AgentLimits, build_user

AGENT = Endpoint("db", 8123, "pr_0123456789_0", "pa'ss")


def test_a_runs_user_ends_by_itself() -> None:
    """S31: a run that nobody cleans up after leaves a user that can't log in; a Job that is tried again replaces it."""
    until = datetime(2026, 11, 30, 14, tzinfo=timezone(timedelta(hours=2)))
    create, grant = build_user(AGENT, "ds_1", AgentLimits(), until=until)
    assert create.startswith(
        "CREATE USER OR REPLACE pr_0123456789_0 IDENTIFIED WITH sha256_password BY 'pa\\'ss'"
        " VALID UNTIL '2026-11-30 12:00:00 UTC' DEFAULT DATABASE ds_1 SETTINGS "
    )
    assert "readonly" not in create
    assert grant == "GRANT SELECT, SHOW ON ds_1.* TO pr_0123456789_0"


def test_bounds_are_those_of_the_embedded_engines() -> None:
    """S19: servers' own defaults pass, and nothing above."""
    create, _ = build_user(AGENT, "ds_1", AgentLimits(), until=datetime(2027, 1, 1, tzinfo=UTC))
    for name, value in AgentLimits().bounds.items():
        assert f"{name} = {value} MIN 1 MAX {value}" in create
