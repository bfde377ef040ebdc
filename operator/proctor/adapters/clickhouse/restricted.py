"""The user as whom servers under test query: one database to read, bounds on every query, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.core.seeding.sql import quote


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """Bounds of one agent query; servers under test ask for up to these by default, so lower ones would refuse them."""

    seconds: int = 30
    memory_bytes: int = 4_000_000_000
    threads: int = 4
    result_rows: int = 1_000_000
    result_bytes: int = 256 << 20
    temporary_bytes: int = 2 << 30

    @property
    def bounds(self) -> dict[str, int]:
        """The settings that a query may lower and not raise."""
        return {
            "max_execution_time": self.seconds,
            "max_memory_usage": self.memory_bytes,
            "max_threads": self.threads,
            "max_result_rows": self.result_rows,
            "max_result_bytes": self.result_bytes,
        }


def build_user(
    endpoint: Endpoint, database: str, limits: AgentLimits, *, until: datetime | None = None
) -> tuple[str, ...]:
    """Return the statements that make a user for one database; one of that name is replaced.

    No ``readonly`` among its settings: servers send ``readonly=1`` themselves, which ``readonly=2`` would refuse.

    Args:
        endpoint: its name and password.
        database: what it may read.
        limits: bounds of its queries.
        until: when its password ends to hold; None for never.
    """
    settings = ", ".join(f"{name} = {value} MIN 1 MAX {value}" for name, value in limits.bounds.items())
    end = "" if until is None else f" VALID UNTIL {quote(until.astimezone(UTC).strftime('%Y-%m-%d %H:%M:%S UTC'))}"
    identity = f"IDENTIFIED WITH sha256_password BY {quote(endpoint.password)}{end} DEFAULT DATABASE {database}"
    return (
        f"CREATE USER OR REPLACE {endpoint.user} {identity} SETTINGS {settings}",
        f"GRANT SELECT, SHOW ON {database}.* TO {endpoint.user}",
    )
