"""What comes out when fact queries, asked side by side, fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from proctor.adapters.clickhouse.datasets import compute_facts
from proctor.core.scenarios.answer import Fact
from proctor.errors import ProctorError, Retryable, Terminal

QUERIES = {name: Fact(sql="SELECT 1", type="integer") for name in ("a", "b", "c", "d", "e")}


@dataclass
class FailingSession:
    """A ClickHouse that answers every query with the same failure."""

    failure: ProctorError

    async def run(self, sql: str, settings: Mapping[str, int | str] | None = None) -> None:
        raise AssertionError((sql, settings))

    async def fetch(self, sql: str, settings: Mapping[str, int | str] | None = None) -> list[tuple[object, ...]]:
        del sql, settings
        raise self.failure


@pytest.mark.parametrize("kind", [Retryable, Terminal])
async def test_what_happens_next_is_told_by_the_failures_own_kind(kind: type[ProctorError]) -> None:
    """errors: a group of failures has no kind: a grader whose dataset is away for a second would end for good."""
    with pytest.raises(kind, match="away"):
        await compute_facts(FailingSession(kind("away")), QUERIES, "ds_1")
